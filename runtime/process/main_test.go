//go:build linux || darwin

package process_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/kubeparts/kubeparts/runtime/process"
)

// TestMain runs the supervisor in this binary, as Supervise requires of every program
// that uses the package; and the agent, for tests in which it is
// killed.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_FORGETFUL") != "" {
		forgetful()
		return
	}
	if code, ok := process.Supervise(); ok {
		os.Exit(code)
	}
	if dir := os.Getenv("TEST_AGENT_DIR"); dir != "" {
		if err := agent(dir); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	// By default, a supervisor built with -race sleeps for a second before it exits.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// forgetful is the main function of a program that does not call Supervise.
func forgetful() {
	switch os.Getenv("TEST_FORGETFUL") {
	case "end":
		fmt.Fprintln(os.Stderr, "unknown subcommand")
	case "agent":
		_, err := process.Open(process.Config{Dir: os.Getenv("TEST_FORGETFUL_DIR")})
		fmt.Fprintln(os.Stderr, err)
	default:
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		<-ctx.Done()
	}
}
