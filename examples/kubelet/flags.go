package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/node"
)

// options are the values of the flags.
type options struct {
	kubelet.Config
	file, dropIns, listen, shutdownOn string
	stopPods, version                 bool
	warnings                          []string
}

const usage = `kubelet runs the pods of manifests, and those of a cluster.

  kubelet --pod-manifest-path=DIR             on containerd
  kubelet --kubeconfig=FILE --config=FILE     as a node of a cluster

It accepts the kubelet's command line. Without --config no pod is evicted to protect the
node, and pods have the parent cgroup /kubeparts, so that it can be tried beside a kubelet.
`

// parseArgs parses the arguments twice: flags take precedence over the file of --config.
func parseArgs(args []string) (*options, error) {
	first := new(options)
	if err := first.parse(args); err != nil {
		return nil, err
	}
	if first.version {
		fmt.Println("Kubernetes", kubelet.Version)
		return nil, flag.ErrHelp
	}
	o := &options{file: first.file, dropIns: first.dropIns}
	if err := o.parse(args); err != nil {
		return nil, err
	}
	k, clustered := o.Configuration, o.Cluster.Kubeconfig != "" || o.Cluster.InCluster
	switch {
	case k.StaticPodPath == "" && k.StaticPodURL == "" && !clustered:
		return nil, errors.New("no source of pods: set --pod-manifest-path, --manifest-url or --kubeconfig; see --help")
	case o.stopPods && clustered:
		return nil, errors.New("--stop-pods: the API server terminates the pods of a cluster; use kubectl drain")
	}
	if o.Host.Manage = o.file != "" || o.dropIns != ""; !o.Host.Manage {
		k.CgroupRoot = cmp.Or(k.CgroupRoot, "/kubeparts")
		if k.EvictionHard == nil {
			k.EvictionHard = map[string]string{}
		}
	}
	if o.listen == "default" {
		o.listen = "unix://" + filepath.Join(o.RootDir, "kubelet.sock")
	}
	if _, err := statuspage.Local(o.listen); o.listen != "" && err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return o, nil
}

// parse declares the flags, bound to o, and parses the arguments.
func (o *options) parse(args []string) (err error) {
	if o.Configuration, o.warnings, err = config.Read(o.file, o.dropIns); err != nil {
		return err
	}
	fs := flag.NewFlagSet("kubelet", flag.ContinueOnError)
	fs.StringVar(&o.file, "config", o.file, "KubeletConfiguration `file`; flags take precedence")
	fs.StringVar(&o.dropIns, "config-dir", o.dropIns, "`directory` of files *.conf that are merged into it, in the order of their names")
	fs.StringVar(&o.RootDir, "root-dir", "/var/lib/kubelet", "`directory` of the state")
	fs.StringVar(&o.NodeName, "hostname-override", "", "`name` of the node (default: the host name)")
	fs.StringVar(&o.Cluster.Kubeconfig, "kubeconfig", "", "kubeconfig `file` of the cluster")
	fs.StringVar(&o.Cluster.BootstrapKubeconfig, "bootstrap-kubeconfig", "", "kubeconfig `file` with which a certificate is requested if --kubeconfig does not exist")
	fs.BoolVar(&o.Cluster.InCluster, "in-cluster", false, "join the cluster of the pod that the kubelet runs in, with its service account")
	fs.StringVar(&o.Cluster.CertDir, "cert-dir", "", "`directory` of certificates (default: pki in --root-dir)")
	fs.Func("node-ip", "`addresses` of the node: one, or one of each family, separated by a comma", func(s string) error {
		o.Host.IPs = nil
		for text := range strings.SplitSeq(s, ",") {
			ip := net.ParseIP(strings.TrimSpace(text))
			if ip == nil {
				return fmt.Errorf("%q is not an IP address", text)
			}
			o.Host.IPs = append(o.Host.IPs, ip)
		}
		return nil
	})
	fs.Func("node-labels", "`labels` of the node, as key=value,…", func(s string) (err error) {
		o.Cluster.NodeLabels, err = node.ParseLabels(s)
		return err
	})
	fs.BoolVar(&o.Cluster.CheckpointPods, "remember-pods", false, "run the last known pods of the cluster if the API server is unreachable at the start")
	fs.StringVar(&o.ObjectsDir, "objects", "", "`directory` of ConfigMaps and Secrets for static pods")
	fs.StringVar(&o.Runtime.CredentialProviderConfig, "image-credential-provider-config", "", "CredentialProviderConfig `file or directory`")
	fs.StringVar(&o.Runtime.CredentialProviderBinDir, "image-credential-provider-bin-dir", "", "`directory` of credential provider plugins")
	fs.StringVar(&o.Runtime.PauseImage, "pod-infra-container-image", "", "`image` of sandboxes, which is never deleted (default: that of the runtime)")
	fs.StringVar(&o.Host.DevicePluginsDir, "device-plugins-dir", "", "`directory` where device plugins register (default: device-plugins in --root-dir)")
	fs.StringVar(&o.Host.PodResourcesDir, "pod-resources-dir", "", "`directory` of the pod resources socket (default: pod-resources in --root-dir)")
	fs.Func("cpu-weights", "`formula` of cgroup v2 weights: logarithmic, or linear for runc before 1.3.2 and crun before 1.23", func(s string) (err error) {
		o.Host.CPUWeights, err = cgroups.ParseWeightFormula(s)
		return err
	})
	fs.StringVar(&o.Host.MemoryCgroup, "memory-cgroup", "", "`directory` of the cgroup whose memory is that of the node (default: the root)")
	fs.StringVar(&o.shutdownOn, "shutdown-on", "", "`trigger` of graceful node shutdown, instead of logind: sigterm, or http: POST /shutdown at --listen, with the header in the file shutdown-token of --root-dir")
	fs.DurationVar(&o.Host.Shutdown.Propagation, "shutdown-propagation", 0, "`time` for which pods run after they were reported as not ready")
	fs.DurationVar(&o.Host.Shutdown.Flush, "shutdown-flush", 0, "`time` for the delivery of the last statuses (default 5s)")
	fs.BoolVar(&o.Host.Shutdown.CarryOver, "shutdown-carry-over", false, "give time that pods of one priority do not need to the next")
	fs.StringVar(&o.listen, "listen", "default", "`address` of the status page: HOST:PORT, unix:///PATH, or empty for none; requests are not authenticated (default: the socket kubelet.sock in --root-dir)")
	fs.BoolVar(&o.stopPods, "stop-pods", false, "terminate all pods on SIGTERM or Ctrl-C; not with a cluster")
	fs.BoolVar(&o.version, "version", false, "print the implemented version of Kubernetes")
	check := config.AddFlags(fs, o.Configuration)
	var message strings.Builder // an error is printed once, by main
	fs.SetOutput(&message)
	fs.Usage = message.Reset
	switch err := fs.Parse(config.NormalizeArgs(args)); {
	case errors.Is(err, flag.ErrHelp):
		fs.PrintDefaults()
		fmt.Print(usage, "\n", message.String())
		return err
	case err != nil:
		return fmt.Errorf("%w; see --help", err)
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; see --help", fs.Arg(0))
	}
	warnings, err := check()
	o.warnings = append(o.warnings, warnings...)
	return err
}
