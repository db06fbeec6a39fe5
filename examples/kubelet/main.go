// Kubelet is a complete node on package kube/kubelet, with the kubelet's command line: it
// runs static pods, and the pods of a cluster if a kubeconfig is given.
//
//	# kubelet --config=/var/lib/kubelet/config.yaml --kubeconfig=/etc/kubernetes/kubelet.conf
//	# curl --unix-socket /var/lib/kubelet/kubelet.sock http://localhost/explain
//
// SIGTERM or Ctrl-C stops it and leaves the pods running; the next one takes them over.
// Another signal ends it at once. Logs are written to stderr, changes of pods to stdout.
// The exit code is 1 after an error, otherwise 0.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/runtime/process"
	"github.com/kubeparts/kubeparts/shutdown"
	"github.com/kubeparts/kubeparts/status/printer"
)

func main() {
	if code, ok := process.Supervise(); ok { // a container of --container-runtime-endpoint=process
		os.Exit(code)
	}
	o, err := parseArgs(os.Args[1:])
	if err == nil {
		err = run(o, &printer.Printer{W: os.Stdout})
	}
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1)
	}
}

// run runs the kubelet until a signal.
func run(o *options, out *printer.Printer) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	cfg, level := o.Config, new(slog.LevelVar)
	level.Set(kubelet.LogLevel(int(cfg.Configuration.Logging.Verbosity)))
	cfg.Sink, cfg.Record, cfg.Host.NotifySystemd, cfg.Host.LogLevel = out, out.Record, true, level
	logs := &slog.HandlerOptions{Level: level}
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, logs))
	if cfg.Configuration.Logging.Format == "json" {
		cfg.Logger = slog.New(slog.NewJSONHandler(os.Stderr, logs))
	}
	klog.SetSlogLogger(cfg.Logger) // of client-go
	for _, w := range o.warnings {
		cfg.Logger.Warn("Part of the configuration is not used as in the kubelet", "reason", w)
	}
	cfg.Notify = func(message string) { out.Printf("kubelet", "%s", message) }
	page := http.NewServeMux()
	signals, err := o.addShutdown(&cfg, page, stop)
	if err != nil {
		return err
	}
	interrupted, _ := signal.NotifyContext(ctx, signals...)
	if o.flags.LockFile != "" {
		release, err := takeLockFile(interrupted, lockFile{path: o.flags.LockFile, exitOnContention: o.flags.ExitOnLockContention, stop: stop, logger: cfg.Logger})
		if interrupted.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("--lock-file=%s: %w", o.flags.LockFile, err)
		}
		defer release()
	}
	stopRecording, err := o.record(&cfg)
	if err != nil {
		return err
	}
	defer stopRecording()
	k, err := kubelet.Open(interrupted, cfg)
	if err != nil {
		return err
	}
	page.Handle("/", k.StatusPage())
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(40) // less memory for pods, more CPU time while they start (docs/benchmarks.md)
	}
	group, running := errgroup.WithContext(ctx)
	if o.listen != "" {
		l, err := statuspage.Listen(o.listen)
		if err != nil {
			return errors.Join(fmt.Errorf("--listen=%s: %w; choose another, or stop the process that uses it", o.listen, err), k.Close())
		}
		out.Printf("kubelet", "%s shows what runs here. %s", statuspage.Reach(l.Addr()), statuspage.Warning(l.Addr()))
		group.Go(func() error { return statuspage.Serve(running, l, page, cfg.Logger) })
	}
	group.Go(func() error { defer stop(); return k.Run(running) })
	<-interrupted.Done()
	if o.stopPods && ctx.Err() == nil { // by a signal, not by stop
		out.Printf("kubelet", "stopping the pods; another signal leaves those that still run")
		again, _ := signal.NotifyContext(running, signals...)
		err = k.Drain(again)
	}
	defer exitOnSignal(signals)()
	stop()
	return errors.Join(err, group.Wait())
}

// stopTimeout is longer than Run of a kubelet takes to return. The systemd unit grants more.
const stopTimeout = 45 * time.Second

// exitOnSignal ends the process on another signal, as the kubelet does, or if it has not
// ended after stopTimeout, unless stop is called before.
func exitOnSignal(signals []os.Signal) (stop func()) {
	ended := make(chan struct{})
	again := make(chan os.Signal, 1)
	signal.Notify(again, signals...)
	go func() {
		select {
		case s := <-again:
			fmt.Fprintf(os.Stderr, "kubelet: %v while stopping\n", s)
		case <-time.After(stopTimeout):
			fmt.Fprintf(os.Stderr, "kubelet: not stopped after %v\n", stopTimeout)
		case <-ended:
			return
		}
		os.Exit(1)
	}()
	return func() { close(ended) }
}

// addShutdown adds the trigger of --shutdown-on, and returns the signals that stop the
// kubelet; one that reports that the machine shuts down terminates the pods first.
func (o *options) addShutdown(cfg *kubelet.Config, page *http.ServeMux, stop func()) (signals []os.Signal, err error) {
	signals = []os.Signal{os.Interrupt, syscall.SIGTERM}
	switch local, _ := statuspage.Local(o.listen); {
	case o.shutdownOn == "":
	case o.shutdownOn == "sigterm":
		terms := make(chan os.Signal, 1)
		signal.Notify(terms, syscall.SIGTERM)
		cfg.Host.Shutdown.Triggers, signals = []shutdown.Trigger{shutdown.Signals{Signals: signals[1:], Received: terms, Done: stop}}, signals[:1]
	case o.shutdownOn == "http" && local:
		cfg.Adjust = append(cfg.Adjust, compose.TryAdjust(func(s *shutdown.Config) error { // after RootDir was locked
			trigger, err := shutdown.NewManual(filepath.Join(o.RootDir, "shutdown-token"))
			s.Triggers = []shutdown.Trigger{trigger}
			page.Handle("/shutdown", trigger)
			return err
		}))
	default:
		err = fmt.Errorf("--shutdown-on=%s: want sigterm, or http with --listen at a unix socket or a loopback address", o.shutdownOn)
	}
	return signals, err
}
