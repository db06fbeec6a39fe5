// Package plugintest serves the sockets of plugins in tests: of device plugins, DRA drivers and
// CSI drivers, and the registration of plugins with an agent.
//
// # Behavior
//
// It serves gRPC services at sockets and ends them as the end of a process does. The fakes of
// plugins implement the services.
//
// # Usage
//
//	var sockets plugintest.Sockets
//	err := sockets.Serve(path, func(s *grpc.Server) { drav1.RegisterDRAPluginServer(s, driver) })
//	err = registration.Register(&sockets, registryPath, info)
//	sockets.Stop()
//
// # Concurrency
//
// All methods are safe for concurrent use. Stop waits for all goroutines.
//
// # Guarantees and limits
//
// Stop removes the sockets. A Registration has one plugin.
//
// # Differences from the kubelet
//
// The kubelet's fakes of plugins have a server each.
//
// # Testing
//
// The tests of the plugin managers use it. No package of the node imports it.
package plugintest
