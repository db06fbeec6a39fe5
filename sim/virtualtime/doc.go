// Package virtualtime runs a function in virtual time, outside of tests.
//
// # Behavior
//
// [Run] is testing/synctest for programs. In the function and in the goroutines that it
// starts, package time uses a clock that advances as soon as all of these goroutines are
// blocked: an hour of timers takes as long as the code that they run. Agents, nodes and
// components of this module run in it unchanged.
//
// # Usage
//
//	func main() {
//		err := virtualtime.Run(func(ctx context.Context) error {
//			report, err := sim.Run(ctx, sim.Config{Seed: 7})
//			…
//			return err
//		})
//		…
//	}
//
// synctest.Wait may be called in the function. Tests should call synctest.Test instead,
// which gives them a *testing.T of the bubble.
//
// # Concurrency
//
// Run may be called concurrently; each call has a clock of its own. It must not be called
// in another bubble.
//
// # Guarantees and limits
//
// The clock starts at midnight UTC 2000-01-01 and stops when the function has returned. Its
// context is canceled then, and Run waits for the goroutines that it started: one that
// takes time to return must be waited for in the function. If all goroutines are blocked
// forever, Run panics, and the goroutines of the bubble are in the traceback.
//
// The rules of testing/synctest apply: channels, timers and contexts that were created
// outside must not be used inside, and the reverse. While a goroutine waits for the
// network, a system call, a mutex or a channel from outside, time stands still.
//
// A bubble requires a *testing.T. Run uses a zero one, which testing/synctest accepts but
// does not document; the tests of this package fail if a Go release changes that. No flag
// is registered, and nothing is printed. With the race detector, a data race crashes the
// program after its report.
//
// # Differences from the kubelet
//
// The kubelet has no counterpart.
//
// # Testing
//
// The tests cover results, panics, goroutines that block, and a program that is not a test.
//
// # Stability
//
// Experimental: the API may change in any release.
package virtualtime
