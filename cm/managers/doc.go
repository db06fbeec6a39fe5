// Package managers combines the managers of CPUs, memory, devices and claims for a CRI runtime:
// it admits pods and applies their allocations to the configuration of containers.
//
// # Behavior
//
// The package decides nothing: it calls the managers and converts their results. [Managers] implements
// Config.Managers of runtime/cri.
//
// # Usage
//
//	joint, err := topology.NewManager(topology.Config{Providers: managers.Providers(devices, cpus, memory), …})
//	m, err := managers.New(managers.Config{Topology: joint, CPU: cpus, Memory: memory, Device: devices, Active: active})
//	cfg := cri.Config{Managers: m, …}
//	admitters := pipeline.Admitters{…, m} // releases the resources of terminated pods
//
// # Concurrency
//
// Methods are safe for concurrent use. Admit and PreCreate wait for device plugins.
//
// # Guarantees and limits
//
//   - A variable, mount or annotation of the pod has priority over that of a plugin.
//   - The devices of a container are stored in its annotation kubeparts.io/devices, for
//     an agent that has lost its checkpoint.
//   - Without Config.Claims pods with resource claims are rejected.
//
// # Differences from the kubelet
//
// None.
//
// # Testing
//
// All managers together on a machine with two NUMA nodes, with a real plugin.
//
// # Stability
//
// Experimental: the API will change.
package managers
