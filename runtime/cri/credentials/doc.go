// Package credentials supplies the credentials for pulling images: from the pull secrets of a
// pod, from docker config files of the node, and from credential provider plugins.
//
// A key of a docker config is a registry, "reg.io:5000", optionally with the prefix of a
// repository, "reg.io/team". Each label of the host may be a glob of "*", "?" and "[a-z]" and
// matches one label: "*.reg.io" matches a.reg.io, but not reg.io or b.a.reg.io. Ports must be
// equal; no port matches only no port. A scheme and a leading /v1/ or /v2/ of the path are
// ignored, and index.docker.io is docker.io. The credentials of all matching keys are returned,
// the most specific first.
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
//	secrets, err := credentials.FromSecrets(pullSecrets)
//	keyring := credentials.Union{secrets, files, plugins}
//	creds, err := keyring.Lookup(ctx, container.Image, pod)
//
// A [Credential] has the fields of the CRI's AuthConfig, and a [Source] and a Hash for the
// records of pulled images of package images.
//
// # Concurrency
//
// Keyrings are safe for concurrent use. A Lookup calls its plugins concurrently; concurrent
// lookups with the same request share one run of a plugin. A run is canceled when no caller
// waits for it.
//
// # Guarantees and limits
//
//   - A failing source does not affect the others: Lookup returns their credentials together
//     with an error that names the secret, file, key or plugin.
//   - Lookup returns when its context is done, at most half a second later if a child process
//     of a plugin keeps its output open.
//   - The same sources give the same credentials in the same order.
//   - Errors and printed keyrings contain no passwords or tokens. The stderr of a failing plugin
//     is logged, in one line of at most 2 KiB and without the token it was sent; a plugin that
//     prints other secrets discloses them to readers of the log. It is not part of errors,
//     because these become pod events.
//   - Files are read by each lookup, at most 4 MiB. The response of a plugin is limited to
//     1 MiB and one minute.
//   - A plugin is killed, but not its child processes.
//   - Pull secrets of service accounts are not looked up: admission adds them to the pod. Events
//     for missing secrets are recorded by the caller.
//   - Docker credential helpers, credsStore and credHelpers, are not supported, as in the
//     kubelet; a warning is logged.
//
// # Differences from the kubelet
//
//   - An invalid pull secret or entry is omitted and reported, as is a secret of another type;
//     the kubelet does not pull the image.
//   - "?" and "[a-z]" work in the host of a key, as documented.
//   - index.docker.io and docker.io are the same registry, also with a repository and in
//     matchImages. The kubelet uses the former only if no other key matches.
//   - Identity and registry tokens of docker configs are used.
//   - Two keys of one file for the same registry are tried in a fixed order.
//   - Files are not cached for five minutes.
//   - Plugins run concurrently and are canceled with the context of the pull, and their errors
//     are returned by Lookup, not only logged. Their output is limited.
//   - No token is requested for a plugin that caches by service account and has a cached
//     response.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package credentials
