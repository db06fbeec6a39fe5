package client_test

import (
	"testing/synctest"
	"time"
)

// pass lets time pass, and all that is due by then be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
