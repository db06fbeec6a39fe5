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

// DNS is what the containers' resolv.conf is made from.
type DNS = podconfig.DNS

// podDNS returns the DNS configuration of pod, from the node's file as it is now.
func (r *Runtime) podDNS(pod *v1.Pod) (podconfig.PodDNS, error) {
	host, err := ReadResolvConf(r.cfg.Node.DNS)
	if err != nil && !os.IsNotExist(err) {
		return podconfig.PodDNS{}, err
	}
	return r.cfg.Node.DNS.For(pod, host, r.cfg.Node.IPs())
}

// warnOfDNS records what there is to say of a pod's DNS configuration when its
// sandbox is made (dn-1, dn-3, dn-7).
func (s *podSync) recordDNSWarnings(dns podconfig.PodDNS) {
	if dns.UnknownPolicy {
		s.r.log.Warn("unknown DNS policy, taken for ClusterFirst", "pod", s.name(), "uid", s.pod.UID, "policy", s.pod.Spec.DNSPolicy)
	}
	for _, w := range dns.Warnings {
		ref := runtime.PodRef(s.pod)
		if w.OfNode {
			if s.pod.Spec.NodeName == "" {
				continue // nobody has given this machine a name
			}
			// kubectl describe node looks for this UID.
			ref = v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: s.pod.Spec.NodeName, UID: types.UID(s.pod.Spec.NodeName)}
		}
		s.event(ref, v1.EventTypeWarning, w.Reason, w.Message)
	}
}

// ReadResolvConf reads the node's file that d names (dn-5), and nothing with
// d.NoResolvConf. Its error is for d.Check too, which an agent asks once when it
// starts (dn-9); that of a file that does not exist Is fs.ErrNotExist, and pods
// then get no servers of the node's.
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
