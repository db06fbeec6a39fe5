package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
)

// options are the values of the flags: those of a kubelet, and the kubelet's own.
type options struct {
	kubelet.Config
	flags              config.Flags
	listen, shutdownOn string
	stopPods, strict   bool
	recordDir          string
	warnings           []string
}

const usage = `kubelet runs the pods of manifests, and those of a cluster.

  kubelet --pod-manifest-path=DIR             on containerd
  kubelet --kubeconfig=FILE --config=FILE     as a node of a cluster

It accepts the kubelet's command line. Without --config and --config-dir no pod is evicted to
protect the node, and pods have the parent cgroup /kubeparts, so that it can be tried beside a
kubelet.

`

// parseArgs parses the arguments twice: flags take precedence over the file of --config. It
// returns pflag.ErrHelp if it has printed the version or the flags.
func parseArgs(args []string) (*options, error) {
	first := new(options)
	if err := first.parse(args, "", ""); err != nil {
		return nil, err
	}
	o := &options{strict: first.strict}
	if printed, err := o.setVersion(first.flags.Version); err != nil {
		return nil, err
	} else if printed != "" {
		fmt.Println(printed)
		return nil, pflag.ErrHelp
	}
	if err := o.parse(args, first.flags.File, first.flags.DropIns); err != nil {
		return nil, err
	}
	o.setFlags()
	k, clustered := o.Configuration, o.Cluster.Kubeconfig != "" || o.Cluster.InCluster
	switch {
	case k.StaticPodPath == "" && k.StaticPodURL == "" && !clustered:
		return nil, errors.New("no source of pods: set --pod-manifest-path, --manifest-url or --kubeconfig; see --help")
	case o.stopPods && clustered:
		return nil, errors.New("--stop-pods: the API server terminates the pods of a cluster; use kubectl drain")
	case o.flags.ExitOnLockContention && o.flags.LockFile == "":
		return nil, errors.New("--exit-on-lock-contention: there is no --lock-file")
	}
	if o.Host.Manage = o.flags.File != "" || o.flags.DropIns != ""; !o.Host.Manage {
		k.CgroupRoot = cmp.Or(k.CgroupRoot, "/kubeparts")
		if k.EvictionHard == nil {
			k.EvictionHard = map[string]string{}
		}
	} else if !clustered {
		setStandalonePorts(k)
	}
	if o.listen == "default" {
		o.listen = "unix://" + filepath.Join(o.RootDir, "kubelet.sock")
	}
	if _, err := statuspage.Local(o.listen); o.listen != "" && err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return o, nil
}

// parse declares the flags, bound to o and to the configuration of these files, and parses
// the arguments.
func (o *options) parse(args []string, file, dropIns string) (err error) {
	read := config.Read
	if o.strict {
		read = config.ReadStrict
	}
	if o.Configuration, o.warnings, err = read(file, dropIns); err != nil {
		return err
	}
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	fs.BoolVar(&o.Cluster.InCluster, "in-cluster", false, "join the cluster of the pod that the kubelet runs in, with its service account")
	fs.BoolVar(&o.Cluster.CheckpointPods, "remember-pods", false, "run the last known pods of the cluster if the API server is unreachable at the start")
	fs.StringVar(&o.Objects.Dir, "objects", "", "`directory` of ConfigMaps and Secrets for static pods")
	fs.StringVar(&o.Host.DevicePluginsDir, "device-plugins-dir", "", "`directory` where device plugins register (default: device-plugins in --root-dir)")
	fs.StringVar(&o.Host.PodResourcesDir, "pod-resources-dir", "", "`directory` of the pod resources socket (default: pod-resources in --root-dir)")
	fs.BoolVar(&o.Host.IgnoreForeignPods, "ignore-foreign-pods", false, "start although pods of another node run in the runtime or below --cgroup-root; they are left unchanged")
	fs.StringVar(&o.Host.MemoryCgroup, "memory-cgroup", "", "`directory` of the cgroup whose memory is that of the node (default: the root)")
	fs.StringVar(&o.shutdownOn, "shutdown-on", "", "`trigger` of graceful node shutdown, instead of logind: sigterm, or http: POST /shutdown at --listen, with the header in the file shutdown-token of --root-dir")
	fs.DurationVar(&o.Host.Shutdown.Propagation, "shutdown-propagation", 0, "`time` for which pods run after they were reported as not ready")
	fs.DurationVar(&o.Host.Shutdown.Flush, "shutdown-flush", 0, "`time` for the delivery of the last statuses (default 5s)")
	fs.BoolVar(&o.Host.Shutdown.CarryOver, "shutdown-carry-over", false, "give time that pods of one priority do not need to the next")
	fs.StringVar(&o.listen, "listen", "default", "`address` of the status page: HOST:PORT, unix:///PATH, or empty for none; requests are not authenticated (default: the socket kubelet.sock in --root-dir)")
	fs.BoolVar(&o.strict, "strict-config", o.strict, "refuse configuration files with unknown or duplicate fields, which are otherwise ignored with a warning")
	fs.BoolVar(&o.stopPods, "stop-pods", false, "terminate all pods on SIGTERM or Ctrl-C; not with a cluster")
	fs.StringVar(&o.recordDir, "record-dir", "", "`directory` of recordings of this node (docs/recording.md), without secrets; examples/recording prints them (default: none)")
	check := config.AddFlags(fs, o.Configuration, &o.flags)
	fs.Usage = func() { fmt.Print(usage, "Flags:\n", fs.FlagUsages()) }
	switch err := fs.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case err != nil:
		return fmt.Errorf("%w; see --help", err)
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; see --help", fs.Arg(0))
	}
	o.Host.Flags = config.FlagValues(fs)
	warnings, err := check()
	o.warnings = append(o.warnings, warnings...)
	return err
}

// setFlags sets the fields of the Config to the values of the kubelet's flags.
func (o *options) setFlags() {
	f := &o.flags
	o.NodeName, o.RootDir = f.NodeName, cmp.Or(f.RootDir, "/var/lib/kubelet")
	o.Cluster.Kubeconfig, o.Cluster.BootstrapKubeconfig, o.Cluster.CertDir = f.Kubeconfig, f.BootstrapKubeconfig, f.CertDir
	o.Cluster.NodeLabels, o.Cluster.ExternalCloudProvider = f.NodeLabels, f.ExternalCloudProvider
	o.Host.IPs, o.Host.RuntimeCgroup = f.NodeIPs, f.RuntimeCgroup
	o.Runtime.CredentialProviderConfig, o.Runtime.CredentialProviderBinDir = f.CredentialProviderConfig, f.CredentialProviderBinDir
	o.Runtime.PauseImage = f.PauseImage
}
