// Package suite starts suites of Kubernetes' end-to-end tests as programs: the packages below it
// contain those of test/e2e that concern nodes, and no more of test/e2e than they need, which
// spares the libraries of all clouds.
package suite
