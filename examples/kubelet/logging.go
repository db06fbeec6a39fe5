package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"

	logsapi "k8s.io/component-base/logs/api/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// shown is how much of the logs is seen with -v: all of it.
const shown = 4

// declareLogging declares -v, which a kubelet has with a number.
func declareLogging(fs *flag.FlagSet, o *options) {
	fs.Var((*verbosity)(&o.kubelet.Logging.Verbosity), "v", "show events and log to stderr; with a `number` as much as a kubelet does (--v=2: what it does; --v=4: all)")
}

// verbosity is a number, or true for all.
type verbosity logsapi.VerbosityLevel

func (v *verbosity) String() string { return "" }

func (v *verbosity) IsBoolFlag() bool { return true }

func (v *verbosity) Set(text string) error {
	if on, err := strconv.ParseBool(text); err == nil && len(text) > 1 {
		*v = 0
		if on {
			*v = shown
		}
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return fmt.Errorf("want a number")
	}
	*v = verbosity(n)
	return nil
}

// levelOf is as much as klog would show, as far as slog has levels.
func levelOf(verbosity int) slog.Level {
	switch {
	case verbosity >= shown:
		return slog.LevelDebug
	case verbosity >= 2:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// newLogger writes to stderr, as text or as JSON.
func newLogger(k kubeletconfig.KubeletConfiguration, level *slog.LevelVar) (*slog.Logger, error) {
	level.Set(levelOf(int(k.Logging.Verbosity)))
	opts := &slog.HandlerOptions{Level: level}
	switch k.Logging.Format {
	case "", "text":
		return slog.New(slog.NewTextHandler(os.Stderr, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, opts)), nil
	}
	return nil, fmt.Errorf("logging.format is %q: want text or json", k.Logging.Format)
}
