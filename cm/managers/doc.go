// Package managers joins the managers of CPUs, memory and devices for a CRI runtime:
// it admits pods, and puts into a container's config what the pod was admitted with.
//
// # What it decides
//
// Nothing: it asks the managers, and translates. A [Managers] is what runtime/cri
// takes as Config.Managers.
//
// # Usage
//
//	joint, err := topology.NewManager(topology.Config{Providers: managers.Providers(devices, cpus, memory), …})
//	m, err := managers.New(managers.Config{Topology: joint, CPU: cpus, Memory: memory, Device: devices, Active: active})
//	cfg := cri.Config{Managers: m, …}
//	admitters := podworker.Admitters{…, m} // releases the resources of terminated pods
//
// # Concurrency
//
// Methods may be called from any goroutine. Admit and PreCreate wait for device
// plugins.
//
// # Guarantees and limits
//
//   - A variable, mount or annotation that the pod has itself counts before that of a
//     plugin.
//   - Which devices a container was given is written down in its annotation
//     kubeparts.io/devices, for an agent that has lost its state.
//   - Resource claims (dynamic resource allocation) are refused, with a clear message:
//     nothing here speaks to their drivers.
//
// # Differences from the kubelet
//
// It has dynamic resource allocation.
//
// # Testing
//
// All managers together on a machine of two nodes, with a real plugin.
//
// # Stability
//
// Experimental: try it, and expect it to change.
package managers
