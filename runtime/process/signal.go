package process

import (
	"fmt"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sigRTMin is SIGRTMIN of the C library, which reserves two of the kernel's
// real-time signals.
const sigRTMin, sigRTMax = 34, 64

// signalOf returns the number of a CRI signal on this host; the runtime's default
// is 0.
func signalOf(s runtimeapi.Signal) (int, error) {
	if s == runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		return 0, nil
	}
	name := strings.TrimPrefix(s.String(), "SIGNAL_")
	if rest, ok := strings.CutPrefix(name, "SIGRTMIN"); ok {
		n, _ := strconv.Atoi(strings.TrimPrefix(rest, "PLUS")) // none: 0
		return sigRTMin + n, nil
	}
	if rest, ok := strings.CutPrefix(name, "SIGRTMAX"); ok {
		n, _ := strconv.Atoi(strings.TrimPrefix(rest, "MINUS"))
		return sigRTMax - n, nil
	}
	if n := signalNumber(name); n != 0 {
		return n, nil
	}
	return 0, fmt.Errorf("stop signal %s is unknown on this host", name)
}

// signalName returns the CRI signal of a number; if two names have the same
// number, the first one.
func signalName(n int) runtimeapi.Signal {
	for i := range int32(len(runtimeapi.Signal_name)) {
		if got, err := signalOf(runtimeapi.Signal(i)); err == nil && got == n && i != 0 {
			return runtimeapi.Signal(i)
		}
	}
	return runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT
}

// stopSignal returns the signal that stops the main process.
func (c *container) stopSignal() int {
	if c.rec.StopSignal != 0 {
		return c.rec.StopSignal
	}
	return signalNumber("SIGTERM")
}

// reopenSignal makes a supervisor reopen its log.
func reopenSignal() int { return signalNumber("SIGUSR1") }
