// Package fakecloud implements cloud.API in memory: machines with a boot time, processes
// that behave as a [fake.Behavior] specifies, client tokens, events, and calls that fail or lose
// their answers. It executes nothing.
//
// Time is virtual in a testing/synctest bubble. There are timers and no goroutines.
//
// # Stability
//
// Experimental: expect it to change.
package fakecloud
