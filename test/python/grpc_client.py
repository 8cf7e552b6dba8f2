"""A gRPC client for Python, from stubs that grpc_tools made of the .proto files."""

import os
import unittest

import grpc
from google.rpc import error_details_pb2, status_pb2
from vx.v1 import generate_pb2, generate_pb2_grpc, me_pb2, me_pb2_grpc

CHANNEL = grpc.insecure_channel(os.environ["VX_HOST_AND_PORT"])
MODEL = "vx-sandbox-small"
HELLO = [generate_pb2.Message(role="user", content="Hello")]


def key(name="VX_KEY"):
    return [("authorization", f"Bearer {os.environ[name]}")]


def details_of(error):
    trailers = dict(error.trailing_metadata())
    status = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in status.details:
        detail.Unpack(info) or detail.Unpack(bad)
    return info, bad


class Client(unittest.TestCase):
    def test_unary(self):
        me = me_pb2_grpc.MeServiceStub(CHANNEL).GetMe(me_pb2.GetMeRequest(), metadata=key())
        self.assertTrue(me.key.startswith("vx_live_"))
        self.assertGreater(me.balance_micros, 0)

    def test_stream(self):
        stub = generate_pb2_grpc.GenerateServiceStub(CHANNEL)
        request = generate_pb2.StreamGenerateRequest(model=MODEL, messages=HELLO)
        events = list(stub.StreamGenerate(request, metadata=key()))
        text = "".join(event.delta.content for event in events[:-1])
        self.assertTrue(text.startswith("This is a reply of the sandbox."))
        self.assertEqual(events[-1].done.finish_reason, "stop")
        self.assertGreater(events[-1].done.usage.cost_micros, 0)

    def refusal(self, request, metadata):
        with self.assertRaises(grpc.RpcError) as raised:
            generate_pb2_grpc.GenerateServiceStub(CHANNEL).Generate(request, metadata=metadata)
        return raised.exception

    def test_error_details(self):
        error = self.refusal(generate_pb2.GenerateRequest(model=MODEL, messages=HELLO, max_tokens=0), key())
        self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
        info, bad = details_of(error)
        self.assertEqual((info.reason, info.domain), ("INVALID_ARGUMENT", "vx"))
        self.assertEqual([violation.field for violation in bad.field_violations], ["max_tokens"])

    def test_an_empty_balance_says_what_is_missing(self):
        error = self.refusal(generate_pb2.GenerateRequest(model=MODEL, messages=HELLO), key("VX_BROKE_KEY"))
        self.assertEqual(error.code(), grpc.StatusCode.FAILED_PRECONDITION)
        info, _ = details_of(error)
        self.assertEqual(info.reason, "INSUFFICIENT_BALANCE")
        self.assertEqual(info.metadata["balance_micros"], "0")

    def test_an_unknown_key(self):
        error = self.refusal(generate_pb2.GenerateRequest(model=MODEL, messages=HELLO), key("VX_NO_KEY"))
        self.assertEqual(error.code(), grpc.StatusCode.UNAUTHENTICATED)
        self.assertEqual(details_of(error)[0].reason, "INVALID_API_KEY")


if __name__ == "__main__":
    unittest.main()
