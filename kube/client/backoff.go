package client

import "time"

// backoff returns the delay after a number of consecutive failures.
func backoff(first, last time.Duration, failures int) time.Duration {
	d := first
	for ; failures > 1 && d < last; failures-- {
		d *= 2
	}
	return min(d, last)
}
