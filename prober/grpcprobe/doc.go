// Package grpcprobe asks servers of the gRPC health protocol how they are: the
// grpc probes of package prober, apart from it, so that who has no such probes
// need not link gRPC.
//
// # Usage
//
//	manager, err := prober.New(prober.Config{
//		Handlers: prober.Handlers{GRPC: grpcprobe.Handler{}},
//	})
//
// # Concurrency
//
// A Handler has no state. It may be used by any number of goroutines.
//
// # Guarantees and limits
//
// Each run opens a connection and closes it; nothing is left when Probe returns.
// An answer of more than 10 KiB is a failure.
//
// The dial and the call together have the timeout of the probe. It goes to the
// pod's own IP, always: the API has no host for it. No proxy is asked.
//
// # Differences from the kubelet
//
// A connection that is refused is a failure at once, "error: failed to connect
// service at …", with the reason. The kubelet goes on trying until the timeout,
// and then can say only that.
//
// A mode that is not known is an error that names it.
//
// # Testing
//
// The tests speak with real servers on loopback: ones that serve, that don't,
// that know no health protocol, that never answer, and that are no gRPC servers
// at all.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package grpcprobe
