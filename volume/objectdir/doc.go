// Package objectdir takes ConfigMaps and Secrets from files, so that pods of a node
// without an API server can have them (kubernetes/kubernetes#27312).
//
// # What it decides
//
// Which objects a directory holds, in either of two forms that may be mixed:
//
//	DIR/anything.yaml                         manifests of ConfigMaps and Secrets, YAML or
//	                                          JSON, any number of documents in a file
//	DIR/configmaps/NAMESPACE/NAME/KEY         a file per key
//	DIR/secrets/NAMESPACE/NAME/KEY
//
// and what changes among them, of which it tells at once (F-43).
//
// # Usage
//
//	objects, err := objectdir.New(objectdir.Config{Path: "/etc/agent/objects", Changed: volumes.ObjectChanged})
//	go objects.Run(ctx)
//	// objects is a volume.Objects
//
// # Concurrency
//
// All methods may be called from many goroutines, but Read not while Run runs. Config's
// funcs are called by the goroutine that reads, one at a time.
//
// # Guarantees and limits
//
//   - A file that can't be used is named by Problems and harms no other. If an earlier
//     version of it could be used, its objects stay as they were.
//   - Before the directory has been read once the methods wait: an object is never
//     "not found" because nobody has looked yet.
//   - An object that doesn't exist is an error that Is fs.ErrNotExist, in the kubelet's
//     words: configmap "name" not found.
//   - What the API server would refuse is refused: names and keys that can't be, data of
//     more than 1 MiB.
//   - There are no tokens of service accounts, which only an API server can sign.
//
// # Differences from the kubelet
//
// It has no such source.
//
// # Testing
//
// Tables of files and what comes of them; changes on a real directory; the parser is
// fuzzed.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package objectdir
