// Package remote counts what is spoken with others over gRPC: the CRI runtime, CSI
// drivers, device plugins, and those who ask for the resources of pods. It is apart
// from package metrics, which needs no gRPC.
//
// # What it decides
//
// Which metrics of a kubelet the hooks of runtime/cri, cm/device, cm/podresources and
// volume/csi become; docs/metrics.md lists them.
//
// # Usage
//
//	m, err := metrics.New(metrics.Config{NodeName: "n1"})
//	r, err := remote.New(m)
//	rt, err := cri.New(cri.Config{Hooks: r.Runtime(), …})
//
// # Concurrency
//
// Everything may be called from any goroutine.
//
// # Guarantees and limits
//
// As those of package metrics. New may be called once for a metrics.Metrics.
//
// # Differences from the kubelet
//
//   - Host process containers are counted with the others only: there are none here.
//
// # Testing
//
// The tests of package metrics hold all of it to the list of a kubelet's metrics.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package remote
