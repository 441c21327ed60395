#!/bin/sh
# kcat, the command line of librdkafka: `kcat.sh FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works.
set -eu
feature=$1 bootstrap=$2 topic=$3

expect() { [ "$1" = "$2" ] || { echo "expected '$1', got '$2'" >&2; exit 1; }; }
produce() { printf '%s\n' ${values:-a b c} | kcat -q -b "$bootstrap" -t "$topic" -p 0 -P "$@"; }
consume() { timeout 30 kcat -q -b "$bootstrap" -t "$topic" -p 0 -C -o beginning -e "$@" | tr '\n' ' '; }
join() { timeout 30 kcat -q -b "$bootstrap" -X auto.offset.reset=earliest -c 3 -G "$topic" "$topic" | tr '\n' ' '; }

case $feature in
round-trip) produce; expect 'a b c ' "$(consume)" ;;
codecs)
    for codec in gzip snappy lz4 zstd; do produce -z $codec; done
    expect 'a b c a b c a b c a b c ' "$(consume)" ;;
idempotence) produce -X enable.idempotence=true; expect 'a b c ' "$(consume)" ;;
transactions)
    produce -X "transactional.id=$topic"
    expect 'a b c ' "$(consume -X isolation.level=read_committed)" ;;
group)
    produce
    expect 'a b c ' "$(join)"
    values='d e f' # not the same again: those would also come to a group that forgot where it stood
    produce
    expect 'd e f ' "$(join)" ;;
topics) produce; kcat -q -b "$bootstrap" -L -t "$topic" | grep -q "topic \"$topic\" with" ;;
offsets) produce; expect "$topic [0] offset 3" "$(kcat -q -b "$bootstrap" -Q -t "$topic:0:-1")" ;;
*) echo "kcat has no $feature" >&2; exit 2 ;;
esac
