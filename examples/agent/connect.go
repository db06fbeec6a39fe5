package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
	"github.com/kubeparts/kubeparts/runtime/process"
)

// dialTimeout is how long a CRI runtime may take to answer first.
const dialTimeout = 20 * time.Second

// A connected is the runtime that was chosen.
type connected struct {
	*cri.Runtime
	name     string
	typ      string // of runtime: "containerd"
	cri      internalapi.RuntimeService
	images   internalapi.ImageManagerService
	facts    podconfig.Node
	node     *podNode
	managers *nodeManagers
	noResize string // why nothing can be resized in place; "" if it can
	close    func(context.Context) error
}

// connect makes the runtime: the same pod engine over plain processes or over a
// CRI socket.
func connect(ctx context.Context, opts options, joined *cluster, vols *volumes, objects cri.Objects, pods *view, logger *slog.Logger, hostIPs func() []string, changed func(types.UID), record func(runtime.Event)) (connected, error) {
	var c connected
	keyring, err := nodeCredentials(opts, logger)
	if err != nil {
		return c, err
	}
	facts, err := cri.ReadFacts(os.DirFS("/"))
	if err != nil {
		return c, fmt.Errorf("what this machine has can't be read: %w", err)
	}
	c.facts = facts
	cfg := cri.Config{
		Node: cri.Node{IPs: hostIPs, Facts: facts}, PodLogsDir: opts.logs, RootDir: opts.root,
		Keyring: keyring, Objects: objects, Streams: new(streaming.Client), Record: record, Logger: logger,
	}
	if opts.runtime == "process" {
		processes, err := process.New(process.Config{Dir: filepath.Join(opts.root, "process"), Logger: logger})
		if err != nil {
			return c, fmt.Errorf("--root=%s can't be used; choose another, or end the agent that has it: %w", opts.root, err)
		}
		if err := offerSelf(filepath.Join(opts.root, "bin")); err != nil {
			return c, err
		}
		cfg.Name, cfg.Runtime, cfg.Images = process.Name, processes, processes
		if c.node, err = readNode(ctx, opts, nil, record, logger); err != nil {
			return c, err
		}
		if c.managers, err = readManagers(ctx, opts, nil, c.node.capacity, pods, changed, logger); err != nil {
			return c, err
		}
		c.name, c.noResize, c.close = "plain processes", "plain processes have no limits that could be changed", processes.Close
	} else {
		// A socket that somebody holds and nobody answers at says nothing.
		dialing, cancel := context.WithTimeout(ctx, dialTimeout)
		client, err := remote.Dial(dialing, opts.runtime, remote.Config{Logger: logger})
		cancel()
		if err != nil {
			return c, fmt.Errorf("is a CRI runtime listening at %s, and may you use its socket? %w", opts.runtime, err)
		}
		cfg.Name, cfg.Runtime, cfg.Images = client.Name, client.Runtime, client.Images
		c.name, c.close = opts.runtime, client.Close
		if c.node, err = readNode(ctx, opts, client.Runtime, record, logger); err != nil {
			return c, err
		}
		if c.managers, err = readManagers(ctx, opts, client.Runtime, c.node.capacity, pods, changed, logger); err != nil {
			return c, err
		}
	}
	c.node.intoGroups(&cfg)
	c.managers.intoContainers(&cfg)
	c.facts = configured(facts, opts.kubelet, c.node)
	cfg.Node.Facts = c.facts
	c.typ, c.cri, c.images = cfg.Name, cfg.Runtime, cfg.Images
	c.Runtime, err = cri.New(vols.runtime(joined.runtime(cfg)))
	return c, err
}

// offerSelf puts this program on the PATH of the processes as kubeparts-agent, so
// that a pod can run its web server where there is no other.
func offerSelf(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	link := filepath.Join(dir, "kubeparts-agent")
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Symlink(self, link); err != nil {
		return err
	}
	return os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}
