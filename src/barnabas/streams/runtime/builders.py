"""The table from the class of an operator to the function that builds its node."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from barnabas.streams.runtime import aggregate_nodes as aggregates
from barnabas.streams.runtime import foreign_key_nodes as foreign_keys
from barnabas.streams.runtime import join_nodes as joins
from barnabas.streams.runtime import stream_nodes as streams
from barnabas.streams.runtime import table_nodes as tables
from barnabas.streams.runtime.endpoints import build_sink, build_source
from barnabas.streams.runtime.process_nodes import build_process
from barnabas.streams.runtime.suppress_nodes import build_suppress
from barnabas.streams.runtime.wiring import Builder
from barnabas.streams.topology import operators as stream_operators
from barnabas.streams.topology import table_operators

__all__ = ["BUILDERS"]

BUILDERS: Final[Mapping[type[Any], Builder]] = MappingProxyType(
    {
        stream_operators.Source: build_source,
        stream_operators.Sink: build_sink,
        stream_operators.Filter: streams.build_filter,
        stream_operators.MapRecord: streams.build_map,
        stream_operators.MapValues: streams.build_map_values,
        stream_operators.FlatMap: streams.build_flat_map,
        stream_operators.FlatMapValues: streams.build_flat_map_values,
        stream_operators.Peek: streams.build_peek,
        stream_operators.Foreach: streams.build_peek,
        stream_operators.PassThrough: streams.build_pass_through,
        stream_operators.DropNullKeys: streams.build_drop_null_keys,
        stream_operators.Branch: streams.build_branch,
        stream_operators.Process: build_process,
        stream_operators.Aggregate: aggregates.build_aggregate,
        stream_operators.WindowAggregate: aggregates.build_window_aggregate,
        stream_operators.SessionAggregate: aggregates.build_session_aggregate,
        stream_operators.JoinWindow: joins.build_join_window,
        stream_operators.StreamJoinSide: joins.build_stream_join_side,
        stream_operators.StreamTableJoin: joins.build_stream_table_join,
        stream_operators.GlobalTableJoin: joins.build_global_table_join,
        table_operators.CogroupTable: aggregates.build_cogroup_table,
        table_operators.TableSource: tables.build_table_source,
        table_operators.TableFilter: tables.build_table_filter,
        table_operators.TableMapValues: tables.build_table_map_values,
        table_operators.ToStream: tables.build_to_stream,
        table_operators.GroupTable: tables.build_group_table,
        table_operators.TableAggregate: tables.build_table_aggregate,
        table_operators.TableJoinSide: joins.build_table_join_side,
        table_operators.TableJoinMerge: joins.build_table_join_merge,
        table_operators.Suppress: build_suppress,
        table_operators.SubscriptionSend: foreign_keys.build_subscription_send,
        table_operators.SubscriptionReceive: foreign_keys.build_subscription_receive,
        table_operators.SubscriptionJoin: foreign_keys.build_subscription_join,
        table_operators.ForeignTableJoin: foreign_keys.build_foreign_table_join,
        table_operators.ResponseJoin: foreign_keys.build_response_join,
    }
)
