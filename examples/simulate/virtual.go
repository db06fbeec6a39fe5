package main

import (
	"os"
	"testing"
	"testing/synctest"
)

// virtually runs f in virtual time, in which waiting takes none, and exits with
// what it returns.
//
// A synctest bubble, which is what virtual time is in Go, can only be made in a
// test; and testing.Main runs a test in any program. It reads the command line
// as a test does, so that ours is taken away from it first.
func virtually(f func(t *testing.T) (code int)) {
	os.Args = os.Args[:1]
	testing.Init()
	testing.Main(
		func(pattern, name string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "simulate", F: func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { os.Exit(f(t)) }) // before the testing package says what it thinks
		}}}, nil, nil)
}
