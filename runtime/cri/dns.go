package cri

import (
	"fmt"
	"io"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// DNS configures the resolv.conf of containers.
type DNS = podconfig.DNS

// podDNS returns the DNS configuration of pod, based on the current file of the node.
func (r *Runtime) podDNS(pod *v1.Pod) (podconfig.PodDNS, error) {
	host, err := ReadResolvConf(r.cfg.Node.DNS)
	if err != nil && (r.cfg.Node.DNS.ResolvConf != "" || !os.IsNotExist(err)) {
		return podconfig.PodDNS{}, err
	}
	return r.cfg.Node.DNS.ForPod(pod, host, r.cfg.Node.IPs())
}

// recordDNSWarnings records the warnings about a pod's DNS configuration when its sandbox
// is created.
func (s *podSync) recordDNSWarnings(dns podconfig.PodDNS) {
	if dns.UnknownPolicy {
		s.r.log.Warn("Unknown DNS policy, using ClusterFirst", "pod", s.pod.Namespace+"/"+s.pod.Name, "podUID", s.pod.UID, "policy", s.pod.Spec.DNSPolicy)
	}
	for _, w := range dns.Warnings {
		ref := runtime.PodRef(s.pod)
		if w.ForNode {
			if s.pod.Spec.NodeName == "" {
				continue // the node has no name
			}
			// kubectl describe node selects events by this UID.
			ref = v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: s.pod.Spec.NodeName, UID: types.UID(s.pod.Spec.NodeName)}
		}
		s.event(ref, v1.EventTypeWarning, w.Reason, w.Message)
	}
}

// ReadResolvConf reads the resolv.conf of the node that d names; with d.NoResolvConf it
// returns an empty one. Pass both results to d.CheckLimits when an agent starts. If the file
// does not exist, errors.Is(err, fs.ErrNotExist) is true: no sandbox is created if
// d.ResolvConf names the file, and pods get no name servers of the node if it is empty.
func ReadResolvConf(d DNS) (podconfig.ResolvConf, error) {
	if d.NoResolvConf {
		return podconfig.ResolvConf{}, nil
	}
	file, err := os.Open(d.Path())
	if err != nil {
		return podconfig.ResolvConf{}, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, podconfig.MaxResolvConf+1))
	if err != nil {
		return podconfig.ResolvConf{}, err
	}
	conf, err := podconfig.ParseResolvConf(string(text))
	if err != nil {
		return podconfig.ResolvConf{}, fmt.Errorf("%s: %w", d.Path(), err)
	}
	return conf, nil
}
