// Agent is a node agent without Kubernetes clients: it runs the pods of manifest files, as
// processes or as containers, with package agent and the parts of the core module.
//
// Try it from the root of the repository; it needs no root, daemon or cluster:
//
//	$ go run ./examples/agent --manifests=examples/agent/pods
//	$ w3m http://127.0.0.1:10258/             # in another shell; or any browser
//	$ curl -s http://127.0.0.1:10258/explain  # why each pod is in its state
//	$ curl -s http://127.x.y.z:8080/          # the IP of pod web
//
// Change a file in examples/agent/pods and watch. Ctrl-C stops the pods and the agent;
// kill -9 stops only the agent, and the next one takes over its pods.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/claim"
	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/prober/grpcprobe"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/process"
	"github.com/kubeparts/kubeparts/status/printer"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/configmap"
	"github.com/kubeparts/kubeparts/volume/downward"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/hostpath"
	"github.com/kubeparts/kubeparts/volume/objectdir"
	"github.com/kubeparts/kubeparts/volume/payload"
	"github.com/kubeparts/kubeparts/volume/projected"
	"github.com/kubeparts/kubeparts/volume/secret"
)

func main() {
	if code, ok := process.Supervise(); ok { // this process supervises a container
		os.Exit(code)
	}
	if len(os.Args) == 4 && os.Args[1] == "serve" { // the web server of the example pods: serve ADDRESS TEXT
		check(http.ListenAndServe(os.Args[2], http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, os.Args[3]) })))
	}
	o := parse()
	release, err := claim.Take(claim.Config{Root: o.root, RuntimeEndpoint: o.runtime, PodLogsDir: o.podLogs, Logger: o.logger})
	check(err, claim.ErrInUse, "stop the process that uses it, or choose another --root or --runtime")
	defer release()
	check(run(o))
}

// check ends the process if err is not nil. hint is a class of errors and the action after such an error.
func check(err error, hint ...any) {
	if err != nil && len(hint) == 2 && errors.Is(err, hint[0].(error)) {
		err = fmt.Errorf("%w; %s", err, hint[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

// must returns v if err is nil: an agent whose parts cannot be constructed does not start.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// options are the values of the flags, and what follows from them.
type options struct {
	manifests, objects, runtime, root, podLogs, nodeName, listen string
	stopPods                                                     bool
	logger                                                       *slog.Logger
}

func parse() (o options) {
	host, _ := os.Hostname()
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "agent runs the pods of manifest files, as processes or as containers:\n\n",
			"  agent --manifests=DIR\n  agent --manifests=DIR --runtime=unix:///run/containerd/containerd.sock   (as root)\n\n")
		flag.PrintDefaults()
	}
	flag.StringVar(&o.manifests, "manifests", "", "`file or directory` of pod manifests")
	flag.StringVar(&o.objects, "objects", "", "`directory` of the ConfigMaps and Secrets that pods refer to (default ROOT/objects)")
	flag.StringVar(&o.runtime, "runtime", "process", "process, which isolates nothing, or the `endpoint` of a CRI runtime")
	flag.StringVar(&o.root, "root", "", "`directory` of the agent's state (default kubeparts-agent in the user's cache; with a CRI runtime /var/lib/kubeparts)")
	flag.StringVar(&o.nodeName, "node-name", strings.ToLower(host), "`name` of the node")
	flag.StringVar(&o.listen, "listen", "127.0.0.1:10258", "`address` of the status page: HOST:PORT, unix:///PATH, or empty; requests are not authenticated")
	var stopPods *bool
	flag.BoolFunc("stop-pods", "on a signal, stop the pods as well (default true; with a CRI runtime false)", func(s string) error { b, err := strconv.ParseBool(s); stopPods = &b; return err })
	verbosity := flag.Int("v", 0, "`level` of logs: 0 warnings, 1 information, 2 everything")
	flag.Parse()
	processes := o.runtime == "process"
	switch {
	case flag.NArg() > 0:
		check(fmt.Errorf("unexpected argument %q; see --help", flag.Arg(0)))
	case o.manifests == "":
		check(errors.New("no --manifests; name a file or a directory of pod manifests, such as examples/agent/pods"))
	case !processes && !strings.HasPrefix(o.runtime, "unix://"):
		check(fmt.Errorf("--runtime=%s; want process, or a socket such as unix:///run/containerd/containerd.sock", o.runtime))
	}
	o.stopPods = stopPods != nil && *stopPods || stopPods == nil && processes
	if o.root == "" && processes {
		o.root = filepath.Join(must(os.UserCacheDir()), "kubeparts-agent")
	}
	o.root = must(filepath.Abs(cmp.Or(o.root, "/var/lib/kubeparts")))
	o.objects, o.podLogs = cmp.Or(o.objects, filepath.Join(o.root, "objects")), filepath.Join(o.root, "log", "pods")
	o.logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn - slog.Level(4**verbosity)}))
	return o
}

// run runs the agent until a signal.
func run(o options) error {
	signaled, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := &printer.Printer{W: os.Stdout}
	n := newNode(signaled, o, out)
	defer n.close(context.Background())
	if o.listen != "" {
		ln, err := statuspage.Listen(o.listen)
		check(err, syscall.EADDRINUSE, "stop the process that uses it, or choose another --listen")
		out.Printf("agent", "%s shows what runs here. %s", statuspage.Reach(ln.Addr()), statuspage.Warning(ln.Addr()))
		n.parts = append(n.parts, func(ctx context.Context) error { return statuspage.Serve(ctx, ln, n.page, o.logger) })
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(40) // less memory for pods, more CPU time while they start (docs/benchmarks.md)
	}
	group, ctx := errgroup.WithContext(ctx)
	context.AfterFunc(ctx, restore) // which also ends the wait for a signal if a part fails
	for _, run := range n.parts {
		group.Go(func() error { return run(ctx) })
	}
	group.Go(func() error {
		defer cancel() // after this the parts return
		<-signaled.Done()
		restore() // a second signal ends the process
		if !o.stopPods || ctx.Err() != nil {
			out.Printf("agent", "stopping; the pods keep running")
			return nil
		}
		out.Printf("agent", "stopping all pods; Ctrl-C again leaves those that still run")
		return n.agent.Drain(ctx)
	})
	return group.Wait()
}

// A node is an agent with the subsystems around it.
type node struct {
	agent *agent.Agent
	page  http.Handler
	parts []func(context.Context) error // to run
	close func(context.Context) error   // closes the runtime
}

// newNode constructs the subsystems, each after those that it calls.
func newNode(ctx context.Context, o options, out *printer.Printer) *node {
	n, history := new(node), new(statuspage.History)
	record := func(e runtime.Event) { out.Record(e); history.Record(e) }
	var volumes *volume.Manager
	files := must(objectdir.New(objectdir.Config{Dir: o.objects, Changed: func(kind, namespace, name string) { volumes.ObjectChanged(kind, namespace, name) }, Logger: o.logger}))
	volumes = newVolumes(o, files, record)
	rt := n.newRuntime(ctx, o, volumes, cri.Config{
		Node: cri.Node{IPs: agent.InterfaceIPs, Facts: must(cri.ReadFacts(os.DirFS("/"))), DNS: cri.DNS{ResolvConf: "/etc/resolv.conf"}},
		Dirs: cri.Dirs{Root: o.root, PodLogs: o.podLogs}, Providers: cri.Providers{Objects: objects{files}, Volumes: volumes},
		Record: record, Logger: o.logger, Hooks: cri.Hooks{Synced: history.Synced},
	})
	manifests := must(podsource.NewFile(podsource.FileConfig{Path: o.manifests, NodeName: o.nodeName, LocalObjects: true, Hooks: podsource.ManifestHooks{
		Problem:  func(p podsource.Problem) { out.Printf("manifests", "%v", p.Err) },
		Resolved: func(path string) { out.Printf("manifests", "%s is in order", path) },
	}}))
	cfg := agent.Config{
		NodeName: o.nodeName, Runtime: rt, Sources: map[string]podsource.PodSource{podsource.FileSource: manifests}, Static: []string{podsource.FileSource}, Sink: out, Record: record, Logger: o.logger,
		HostIPs: agent.InterfaceIPs, Subsystems: agent.Subsystems{Admitters: pipeline.Admitters{rt}, Volumes: volumes, Ledger: rt.Ledger(),
			Probes: prober.Handlers{Exec: prober.Exec{Runtime: rt}, HTTPGet: prober.HTTPGet{}, TCPSocket: prober.TCPSocket{}, GRPC: grpcprobe.Handler{}}},
	}
	var images *imagegc.Manager
	if o.runtime != "process" {
		images = must(imagegc.New(imagegc.Config{
			Store: rt, Policy: imagegc.Policy{Keep: strings.Fields(must(rt.SandboxImage(ctx)))}, Space: imagegc.SpaceOf(rt), Path: filepath.Join(o.root, "images.json"), Record: record, Logger: o.logger,
			Pods: func() ([]*v1.Pod, bool) { return n.agent.Table().Desired(), n.agent.Table().Synced() },
		}))
		cfg.Subsystems.Images, n.parts = images, append(n.parts, images.Run)
	}
	n.agent = must(agent.New(cfg))
	logs := must(logrotate.New(logrotate.Config{Runtime: rt, Logger: o.logger}))
	usage := must(stats.New(stats.Config{NodeName: o.nodeName, Runtime: rt, Root: os.DirFS("/"), NodeDir: o.root, Logger: o.logger}))
	n.parts = append(n.parts, files.Run, volumes.Run, n.agent.Run, logs.Run, usage.Run)
	n.page = must(statuspage.New(statuspage.Config{
		Agent: n.agent, History: history, NodeName: o.nodeName, Runtime: o.runtime, Volumes: volumes, Images: images, Stats: usage, Logger: o.logger,
		Checks: append(statuspage.AgentChecks(n.agent), statuspage.Check{Name: "manifests", Check: manifests.Healthy}),
	}))
	return n
}

// objects are ConfigMaps and Secrets in files. There are no Services.
type objects struct{ *objectdir.Dir }

func (objects) Services(context.Context, string) ([]*v1.Service, bool) { return nil, true }

func newVolumes(o options, objects payload.Objects, record func(runtime.Event)) *volume.Manager {
	mounter := volume.NewMounter(volume.CanMount())
	empty := must(emptydir.New(emptydir.Config{Mounter: mounter, Logger: o.logger}))
	return must(volume.New(volume.Config{RootDir: o.root, Mounter: mounter, Record: record, Logger: o.logger, Plugins: []volume.Plugin{
		empty, new(hostpath.Plugin),
		must(configmap.New(configmap.Config{Objects: objects, Mounter: mounter})),
		must(secret.New(secret.Config{Objects: objects, Tmpfs: empty.Tmpfs()})),
		must(downward.New(downward.Config{Tmpfs: empty.Tmpfs()})),
		must(projected.New(projected.Config{Objects: objects, Tmpfs: empty.Tmpfs()})),
	}}))
}

// newRuntime completes cfg for processes or for a CRI runtime.
func (n *node) newRuntime(ctx context.Context, o options, volumes *volume.Manager, cfg cri.Config) *cri.Runtime {
	if o.runtime == "process" {
		p := must(process.Open(process.Config{Dir: filepath.Join(o.root, "process"), Logger: o.logger}))
		cfg.Name, cfg.Runtime, cfg.Images, n.close = process.Name, p, p, p.Close
		check(os.Setenv("PATH", filepath.Dir(must(os.Executable()))+string(os.PathListSeparator)+os.Getenv("PATH"))) // with the web server of the example pods
		return must(cri.New(cfg))
	}
	c, err := remote.Dial(ctx, o.runtime, remote.Config{Logger: o.logger})
	check(err, err, "start a CRI runtime there, or name its socket with --runtime; root may be required")
	cfg.Name, cfg.Runtime, cfg.Images, n.close, cfg.Providers.Ledger = c.Name, c.Runtime, c.Images, c.Close, must(cri.OpenLedger(ctx, cri.LedgerConfig{RootDir: o.root, Runtime: c.Runtime, Logger: o.logger}))
	return must(cri.New(cfg))
}
