// Package release has the tests of a release's files: they run what a user installs. KUBEPARTS_RELEASE
// is the directory that hack/release has made; without it they are skipped. `bash .ci/run release`
// makes the files and runs them.
package release
