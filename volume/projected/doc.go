// Package projected is the plugin of projected volumes: ConfigMaps, Secrets, the downward
// API, tokens of service accounts and trust bundles in one directory.
//
// # What it decides
//
// The files are those that volume/payload makes of all sources (vol-54 … vol-57), written
// by volume/atomic into memory, which containers have read-only.
//
// # Usage
//
//	plugin, err := projected.New(projected.Config{Objects: objects, Tokens: tokens, Tmpfs: emptyDir.Tmpfs()})
//	// plugin is a volume.Plugin: hand it to volume.New
//
// # Concurrency
//
// As volume.Plugin says.
//
// # Guarantees and limits
//
//   - If a source can't be had nothing is written, and the error names all such (vol-54).
//   - A token is replaced in time, whether or not the pod is synced: SetUp tells the
//     manager when to call again (F-48).
//   - A subPath of the volume never changes (vol-42): don't use one for tokens.
//   - podCertificate sources are an error (vol-58).
//
// # Differences from the kubelet
//
// Those of volume/payload, volume/token and volume/atomic.
//
// # Testing
//
// volumetest.TestPlugin, each rule by number, and a token's whole life in virtual time.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package projected
