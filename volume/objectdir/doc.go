// Package objectdir reads ConfigMaps and Secrets from files, for pods on a node without an API server
// (kubernetes/kubernetes#27312).
//
// # Behavior
//
// The package determines the objects that a directory contains. There are two formats, which may be mixed:
//
//	DIR/anything.yaml                         manifests of ConfigMaps and Secrets, YAML or
//	                                          JSON, any number of documents in a file
//	DIR/configmaps/NAMESPACE/NAME/KEY         a file per key
//	DIR/secrets/NAMESPACE/NAME/KEY
//
// Changes are reported when the file system notifies of them.
//
// # Usage
//
//	objects, err := objectdir.New(objectdir.Config{Dir: "/etc/agent/objects", Changed: volumes.ObjectChanged})
//	go objects.Run(ctx)
//	// objects is a payload.Objects
//
// # Concurrency
//
// All methods are safe for concurrent use, except that Read must not be called while Run runs. Config's
// functions are called sequentially by the goroutine that reads.
//
// # Guarantees and limits
//
//   - An invalid file is reported by Problems and does not affect other files. The objects of its last
//     valid version remain in use.
//   - The methods block until the directory has been read once.
//   - If an object does not exist, the error is fs.ErrNotExist, with the kubelet's text: configmap
//     "name" not found.
//   - Objects that the API server would reject are invalid: invalid names and keys, more than 1 MiB of
//     data.
//   - There are no service account tokens, which only an API server can sign.
//
// # Differences from the kubelet
//
// The kubelet has no such source.
//
// # Testing
//
// Table tests of files, changes in a real directory, and a fuzz test of the parser.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package objectdir
