// Package grpcprobe carries out the grpc probes of package prober with the gRPC health protocol.
// It is a package of its own so that programs without such probes do not link gRPC.
//
// # Usage
//
// As in the package example:
//
//	manager, err := prober.New(prober.Config{
//		Handlers: prober.Handlers{GRPC: grpcprobe.Handler{}},
//	})
//
// # Concurrency
//
// A Handler has no state and is safe for concurrent use.
//
// # Guarantees and limits
//
// Each attempt opens a connection and closes it before Probe returns. A response of more than
// 10 KiB is a failure.
//
// The timeout of the probe applies to the dial and the call together. The address is always the
// pod IP, since the API has no host for gRPC probes. Proxies are not used.
//
// # Differences from the kubelet
//
// A refused connection is an immediate failure, "error: failed to connect service at …", with
// the reason. The kubelet retries until the timeout and reports only that.
//
// An unknown mode is an error that names it.
//
// # Testing
//
// The tests use servers on the loopback interface: serving and not serving ones, without the
// health protocol, without a response, and without gRPC.
//
// # Stability
//
// Growing: a minor version may change the API, and CHANGELOG.md describes how to migrate.
package grpcprobe
