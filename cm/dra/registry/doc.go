// Package registry calls the plugins of drivers for dynamic resource allocation (DRA), which
// serve gRPC on Unix sockets.
//
// # Behavior
//
// A [Registry] has the plugins that have registered. It implements dra.Plugins: it calls them
// to prepare and unprepare claims. It keeps a connection to each, receives the health of their
// devices, and deletes the ResourceSlices of drivers that are not connected, so that no pods
// with their devices are scheduled to the node.
//
// # Usage
//
//	plugins, err := registry.New(registry.Config{Slices: slices})
//	manager, err := dra.New(dra.Config{Plugins: plugins, …})
//	watcher, err := register.New(register.Config{ // of volume/csi/register
//		Dir: "/var/lib/kubelet/plugins_registry", Handlers: map[string]register.Handler{register.DRAPlugin: plugins},
//	})
//	// run all three
//
// # Concurrency
//
// All methods are safe for concurrent use; Run may be called once.
//
// # Guarantees and limits
//
//   - The versions v1 and v1beta1 of a plugin are supported, and v1 and v1alpha1 of its health.
//   - A response of a driver has at most 16 MiB, 256 devices for each claim, and valid CDI
//     names; the health of at most 10,000 devices of a driver is stored.
//   - A plugin that is replaced by another one of its driver completes its calls in progress.
//   - A driver that is not connected for the grace period has no ResourceSlices; their deletion
//     is retried until it succeeds or the driver is connected again.
//
// # Differences from the kubelet
//
//   - Invalid CDI names are errors of the driver instead of the runtime.
//
// # Testing
//
// Package dratest has a driver with faults, which the tests use over its sockets.
//
// # Stability
//
// Experimental: the API will change.
package registry
