// Package credentials finds the credentials with which an image may be pulled:
// in the pull secrets of a pod, in docker config files of the node, and by
// asking credential provider plugins.
//
// # What it decides
//
// Which credentials are for an image, and which of them is tried first. A key of
// a docker config names a registry, "reg.io:5000", and may go on with the begin
// of a repository, "reg.io/team". Each part of the host between dots may be a
// glob of "*", "?" and "[a-z]", and is for one such part: "*.reg.io" is for
// a.reg.io, neither for reg.io nor for b.a.reg.io. Ports have to be the same, and
// none is the same as none. A scheme and a leading /v1/ or /v2/ of the path are
// not looked at, and index.docker.io is docker.io. Of several keys that match,
// the most specific one goes first; all are tried (img-14).
//
// # Usage
//
//	files, err := credentials.NewFiles(credentials.FilesConfig{
//		Paths: credentials.DefaultPaths("/var/lib/kubelet", "", os.Getenv("HOME")),
//	})
//	providers, err := credentials.ReadProviders("/etc/kubernetes/providers.yaml")
//	plugins, err := credentials.NewPlugins(credentials.PluginsConfig{
//		Providers: providers,
//		Dir:       "/usr/libexec/credential-providers",
//	})
//
//	// for each pull
//	own, problems := credentials.FromSecrets(pullSecrets)
//	keyring := credentials.Union{own, files, plugins}
//	creds, err := keyring.Lookup(ctx, container.Image, pod)
//
// A [Credential] has the fields of the CRI's AuthConfig, and a [Source] and Hash
// for the records of who pulled an image (img-5, img-6). [Hash] of all of them
// belongs into the key of a pull's back-off (lq-17).
//
// # Concurrency
//
// Keyrings may be used from many goroutines. A Lookup asks its plugins at the
// same time; lookups that ask a plugin the same share one run of it. A run ends
// when nobody waits for it any more.
//
// # Guarantees and limits
//
//   - What cannot be read or asked never hides the rest: a Lookup returns the
//     credentials of the other sources beside its error, and the error names the
//     secret, file, key or plugin.
//   - A lookup ends with its context, within half a second of it if a plugin has
//     children that hold its output.
//   - The same sources give the same credentials in the same order.
//   - No error or printed keyring has a password or token in it. The stderr of a
//     plugin that fails is logged, in one line of at most 2 KiB, without the token
//     that it was given; a plugin that prints other secrets discloses them to
//     readers of the log. It is in no error, since errors reach the events of pods.
//   - Files are read at each lookup, at most 4 MiB. A plugin may answer with
//     1 MiB, within a minute.
//   - A plugin is killed, not its children.
//   - Secrets of a service account are not looked for: admission writes them into
//     the pod. The events for secrets that are missing are the caller's.
//   - The credential helpers that docker knows, credsStore and credHelpers, are
//     not asked. The kubelet does not either; here a log record says so.
//
// # Differences from the kubelet
//
//   - A pull secret or an entry that cannot be read is left out and reported; the
//     kubelet does not pull at all. A secret of another type is reported too.
//   - "?" and "[a-z]" work in the host of a key, as documented.
//   - index.docker.io and docker.io are one registry, also with a repository
//     behind it and in matchImages. The kubelet looks at the first only where
//     nothing else matches.
//   - Identity and registry tokens of docker configs are used.
//   - Two keys of one file for the same registry are tried in a fixed order.
//   - Files are not kept for five minutes.
//   - Plugins are asked at the same time, obey the context of the pull, and their
//     failure is in the error of Lookup, not in a log alone. What they write is
//     bounded.
//   - Nothing is fetched for a plugin that keeps its answers by service account
//     and has one: no token.
//
// # Testing
//
// Tables show the rules of matching and parsing; fuzz tests hold the matcher
// against laws and the parsers against panics. Plugins are real programs: the
// test binary runs itself.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package credentials
