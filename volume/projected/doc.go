// Package projected implements the volume.Plugin of projected volumes: ConfigMaps, Secrets, the
// downward API, service account tokens, trust bundles and pod certificates in one directory.
//
// # Behavior
//
// The content: the files that volume/payload creates from all sources, written by volume/atomic to a
// tmpfs and mounted read-only into containers.
//
// # Usage
//
//	plugin, err := projected.New(projected.Config{Objects: objects, Tokens: tokens, Tmpfs: emptyDir.Tmpfs()})
//	// plugin is a volume.Plugin for volume.Config.Plugins
//
// # Concurrency
//
// Safe for concurrent use as volume.Plugin requires.
//
// # Guarantees and limits
//
//   - If a source cannot be read, nothing is written, and the error contains the errors of all
//     sources.
//   - A token is replaced before it expires even if the pod is not synced: SetUp returns the time of
//     the next refresh.
//   - A subPath of the volume never changes: don't use one for tokens.
//   - A volume with a podCertificate source is set up when the signer has issued the certificate. Until
//     then SetUp returns an error; it should be called again when a PodCertificateRequest of the pod has
//     changed.
//
// # Differences from the kubelet
//
// Those of volume/payload, volume/token, volume/certificate and volume/atomic.
//
// # Testing
//
// volumetest.TestPlugin, a test for each rule, and the lifetime of a token in a synctest bubble.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package projected
