package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// options are what a person can choose.
type options struct {
	version   bool
	runtime   string
	manifests string
	objects   string
	root      string
	logs      string
	nodeName  string
	listen    *string // as given; nil: --listen was not given
	page      string  // address of the status page; "": none

	providers, providerBin string // of credentials for images

	cluster  clusterOptions
	shutdown shutdownOptions

	devicePlugins, podResources string // directories of sockets

	stopPods bool // when the agent is stopped by a signal

	weights     cgroups.WeightFormula
	memoryGroup string // directory of the cgroup whose memory is the node's
	pauseImage  string // of sandboxes

	// config is the file of --config, configDir has what is dropped in beside it;
	// kubelet is what they say, with defaults, and flags bound to its fields win over
	// it. warnings are about fields of the files that nothing comes of.
	config, configDir string
	kubelet           kubeletconfig.KubeletConfiguration
	warnings          []string
}

const usage = `agent runs pods from manifests, without a cluster, or those of a cluster.

  agent --manifests=DIR                       as plain processes of this machine
  agent --manifests=DIR --runtime=unix://SOCK as containers of a CRI runtime
  agent --manifest-url=URL                    from a web server
  agent --kubeconfig=FILE --runtime=unix://SOCK as a node of a cluster
  agent --in-cluster --runtime=unix://SOCK    as a node of the cluster whose pod it runs in

Put a pod's YAML into DIR and it starts; change it and it is replaced; remove it
and it stops. A file that can't be used is named, and hurts no other.

Each flag has the name that a kubelet has for it, or that as another one.
docs/configuration.md has the fields of the file of --config.
`

// declare returns the flags, bound to o: their defaults are what the file says.
func declare(o *options, host string) *flagSet {
	fs := newFlagSet()
	fs.group("What to run, and on what", func() {
		fs.StringVar(&o.manifests, "manifests", o.kubelet.StaticPodPath, "`file or directory` of pod manifests (required without --kubeconfig, --in-cluster or --manifest-url)")
		declareSources(fs.FlagSet, o)
		fs.StringVar(&o.objects, "objects", "", "`directory` of ConfigMaps and Secrets: manifests, or configmaps/NAMESPACE/NAME/KEY and secrets/… (default: there are none)")
		fs.StringVar(&o.runtime, "runtime", cmp.Or(o.kubelet.ContainerRuntimeEndpoint, "process"), "`name or socket` of what runs containers: process, or the unix:// address of a CRI runtime")
		fs.alias("pod-manifest-path", "manifests")
		fs.alias("container-runtime-endpoint", "runtime")
	})
	fs.group("The agent", func() {
		fs.StringVar(&o.config, "config", o.config, "KubeletConfiguration `file`; flags win over it, and fields of which nothing comes are named in warnings")
		fs.StringVar(&o.configDir, "config-dir", o.configDir, "`directory` of files *.conf that are merged into it, in the order of their names")
		fs.StringVar(&o.root, "root", "", "`directory` for the agent's state (default: of your user's cache for process, /var/lib/kubeparts for CRI)")
		fs.StringVar(&o.logs, "pod-logs-dir", o.kubelet.PodLogsDir, "`directory` for the logs of containers (default: below --root for process, /var/log/pods for CRI)")
		fs.StringVar(&o.nodeName, "node-name", strings.ToLower(host), "`name` of this node, which ends the pods' names")
		fs.Func("listen", "`address` of the status page, and of /healthz, /pods, /explain, /stats/summary and /metrics: HOST:PORT, unix:///PATH for a socket with mode 0600, or nothing for none. Requests are not authenticated; values of environments and annotations are not shown. (default 127.0.0.1:10258; with --kubeconfig, --in-cluster, --config or --config-dir the socket agent.sock in --root: curl --unix-socket ROOT/agent.sock http://localhost/)", func(text string) error {
			o.listen = &text
			return nil
		})
		declareStop(fs.FlagSet, o)
		declareLogging(fs.FlagSet, o)
		fs.BoolVar(&o.version, "version", false, "print the version of Kubernetes that the agent implements, and exit")
		fs.alias("root-dir", "root")
		fs.alias("hostname-override", "node-name")
	})
	fs.group("Being a node of a cluster", func() { o.cluster.flags(fs.FlagSet) })
	fs.group("What pods get of the machine", func() {
		declareCgroups(fs.FlagSet, o)
		declareManagers(fs.FlagSet, o)
	})
	fs.group("When pods have to go", func() {
		declareEviction(fs.FlagSet, o)
		o.shutdown.flags(fs.FlagSet)
	})
	fs.group("Images", func() {
		declareImages(fs.FlagSet, o)
		fs.StringVar(&o.providers, "image-credential-provider-config", "", "CredentialProviderConfig `file or directory` of plugins that give credentials for images")
		fs.StringVar(&o.providerBin, "image-credential-provider-bin-dir", "", "`directory` of these plugins' programs")
	})
	fs.group("Other fields of a KubeletConfiguration", func() { fs.fieldFlags(&o.kubelet) })
	fs.group("Flags of a kubelet that have no effect", func() { declareIgnored(fs) })
	return fs
}

func parseFlags(args []string) (options, error) {
	args = asKubelet(args)
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	// Flags win over the file, whose fields they are bound to: they are read a
	// second time when it is known which file that is.
	var first options
	defaults(&first.kubelet)
	fs := declare(&first, host)
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
		fs.help(os.Stdout)
		return first, err
	case err != nil:
		return first, fmt.Errorf("%w; see --help", err)
	case first.version:
		fmt.Println("Kubernetes", kubeletVersion)
		return first, flag.ErrHelp
	}
	o := first
	if first.config != "" || first.configDir != "" {
		o = options{config: first.config, configDir: first.configDir}
		if o.kubelet, o.warnings, err = readConfig(first.config, first.configDir); err != nil {
			return o, err
		}
		fs = declare(&o, host)
		if err := fs.Parse(args); err != nil {
			return o, fmt.Errorf("%w; see --help", err)
		}
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; see --help", fs.Arg(0))
	}
	ignored, err := fs.complaints(&o.kubelet)
	if err != nil {
		return o, err
	}
	o.warnings = append(o.warnings, ignored...)
	ignored, err = o.cluster.check()
	if err != nil {
		return o, err
	}
	o.warnings = append(o.warnings, ignored...)
	if err := o.decideStop(fs.FlagSet); err != nil {
		return o, err
	}
	if o.manifests == "" && o.kubelet.StaticPodURL == "" && !o.cluster.on() {
		return o, fmt.Errorf("--manifests is missing: name a file or a directory of pod manifests, such as examples/agent/pods")
	}
	if o.runtime != "process" && !strings.HasPrefix(o.runtime, "unix://") {
		return o, fmt.Errorf("--runtime=%q: want process, or a socket such as unix:///run/containerd/containerd.sock", o.runtime)
	}
	if (o.providers == "") != (o.providerBin == "") {
		return o, fmt.Errorf("--image-credential-provider-config and --image-credential-provider-bin-dir go together; one is missing")
	}
	if err := o.fillDirs(); err != nil {
		return o, err
	}
	return o, o.fillListen()
}

// configured reports whether somebody has configured a node, rather than trying the
// agent: what a kubelet does to a machine is done then only.
func (o *options) configured() bool { return o.config != "" || o.configDir != "" }

// pairs parses name=amount,name=amount, or what else stands between the two.
func pairs(m *map[string]string, between string) func(string) error {
	return func(text string) error {
		*m = map[string]string{}
		for pair := range strings.SplitSeq(text, ",") {
			key, value, ok := strings.Cut(pair, between)
			if key = strings.TrimSpace(key); !ok || key == "" {
				return fmt.Errorf("%q is not name%samount", pair, between)
			}
			(*m)[key] = strings.TrimSpace(value)
		}
		return nil
	}
}

// fillDirs sets the directories that were not given.
func (o *options) fillDirs() (err error) {
	if o.root == "" && o.runtime == "process" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("no directory for the agent's state; give one with --root: %w", err)
		}
		o.root = filepath.Join(cache, "kubeparts-agent")
	}
	if o.root == "" {
		o.root = "/var/lib/kubeparts"
	}
	if o.root, err = filepath.Abs(o.root); err != nil {
		return err
	}
	if o.devicePlugins == "" {
		o.devicePlugins = filepath.Join(o.root, "device-plugins")
	}
	if o.podResources == "" {
		o.podResources = filepath.Join(o.root, "pod-resources")
	}
	switch {
	case o.logs != "":
		o.logs, err = filepath.Abs(o.logs)
	case o.runtime == "process":
		o.logs = filepath.Join(o.root, "log", "pods")
	default:
		o.logs = "/var/log/pods"
	}
	return err
}
