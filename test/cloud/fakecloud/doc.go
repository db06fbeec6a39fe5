// Package fakecloud is a cloud in memory behind cloud.API: machines that take time to
// come up, processes that behave as a [Program] says, client tokens, events, and calls
// that fail or lose their answers. It executes nothing.
//
// Time is package time: in a testing/synctest bubble it is virtual. It has no goroutine
// of its own; what is to happen later is a timer.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package fakecloud
