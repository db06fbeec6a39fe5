package virtualtime

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"testing"
	"testing/synctest"
)

// Run calls f in virtual time and returns its error. It blocks until f and every goroutine
// that f started have returned. The context of f has no deadline and is canceled when f
// has returned; a context of the caller could not be used in virtual time.
//
// If f panics, Run panics with a text that has the value and the stack of f. It also
// panics if it is called in virtual time, or if goroutines of f are blocked forever or
// still sleep after f has returned. It returns an error if f calls runtime.Goexit.
func Run(f func(ctx context.Context) error) error {
	err := errors.New("virtualtime: the function called runtime.Goexit")
	crash := ""
	synctest.Test(new(testing.T), func(t *testing.T) {
		ended := make(chan struct{})
		go func() { // runtime.Goexit ends only this goroutine
			defer close(ended)
			defer func() {
				if v := recover(); v != nil {
					crash = fmt.Sprintf("%v\n\n%s", v, debug.Stack())
				}
			}()
			err = f(t.Context())
		}()
		<-ended
	})
	if crash != "" {
		panic(crash)
	}
	return err
}
