// Package config reads KubeletConfiguration files: it merges drop-in files, sets
// defaults, and reports the fields that package kubelet ignores.
//
// # Behavior
//
// The effect of each field in package kubelet: whether it is honored, ignored with a
// warning, or refused, and its default. docs/configuration.md lists them. [Validate] applies
// the rules of the kubelet's own validation; docs/configuration-checks.md compares both. Package config
// constructs nothing and does not touch the machine.
//
// # Usage
//
//	cfg, warnings, err := config.Read("/var/lib/kubelet/config.yaml", "")
//	k, err := kubelet.Open(ctx, kubelet.Config{Configuration: cfg})
//
// A command that accepts the kubelet's flags declares them with [AddFlags], as
// examples/kubelet does: each flag of the kubelet is honored, ignored with a warning, or
// refused. [Flags] are those that are not fields.
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # Guarantees and limits
//
//   - A file is a regular file of at most 1 MiB.
//   - Unknown and duplicate fields are ignored with a warning ([ReadStrict] returns an
//     error); values of another type are errors that name the file.
//   - Files of a drop-in directory and of those below it are merged in the order of their
//     paths, field by field; a list replaces the list before it.
//
// # Differences from the kubelet
//
// docs/configuration.md lists the fields and feature gates that have no effect.
//
// # Testing
//
// [Decode] reads a configuration from memory.
//
// # Stability
//
// Experimental: expect it to change.
package config
