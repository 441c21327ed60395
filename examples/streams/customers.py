"""Join three tables into one; the second join goes by a foreign key."""

import msgspec

from barnabas.streams import App


class Customer(msgspec.Struct):
    name: str
    region: str


class Account(msgspec.Struct):
    balance: int


class Region(msgspec.Struct):
    title: str


class Person(msgspec.Struct):
    name: str
    balance: int
    region: str


app = App("customers")
customers = app.table("customers", value=Customer)
accounts = app.table("accounts", value=Account)
regions = app.table("regions", value=Region)
people = customers.join(
    accounts, lambda customer, account: Person(customer.name, account.balance, customer.region), value=Person
)
located = people.join(
    regions,
    lambda person, region: Person(person.name, person.balance, region.title),
    by=lambda person: person.region,
    value=Person,
    store="people",
)
located.to_stream().to("people")
