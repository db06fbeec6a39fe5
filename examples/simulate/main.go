// Simulate runs a node in virtual time, prints a timeline of its pods and a
// summary, and draws a picture if asked to:
//
//	go run ./examples/simulate --seed 7
//	go run ./examples/simulate --manifest examples/simulate/pods/crash.yaml --svg crash.svg
//
// An hour takes some milliseconds, and the same seed has the same hour.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
)

func main() {
	o, err := parseFlags(os.Args[1:], os.Stdout)
	if err == nil && o.svg != "" {
		err = writable(o.svg) // rather now than in the end
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(2)
	}
	virtually(func(t *testing.T) int {
		broken, err := simulate(t.Context(), o, os.Stdout)
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, "simulate:", err)
			return 2
		case broken:
			return 1
		}
		return 0
	})
}

// writable reports why a file could not be written. What is in it stays.
func writable(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
