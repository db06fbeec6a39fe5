package podconfig

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// DNS configures the resolv.conf of containers. With the zero value, pods get the
// resolv.conf of the node.
type DNS struct {
	// ResolvConf is the path of the node's resolv.conf; the caller reads it and passes
	// its content to ForPod. Empty means /etc/resolv.conf. The kubelet's empty
	// resolvConf is NoResolvConf (rule dn-4).
	ResolvConf string

	// NoResolvConf ignores the node's resolv.conf: pods that would use it get the
	// loopback address as name server and no search domains (rule dn-4).
	NoResolvConf bool

	// ClusterDNS are the name servers of pods with the policy ClusterFirst. If empty,
	// these pods get the node's, as with Default; if ClusterDomain is set, this
	// produces a warning. A node with neither belongs to no cluster.
	ClusterDNS []string

	// ClusterDomain is the domain of the cluster's services, "cluster.local". If empty,
	// pods get only the search domains of the node.
	ClusterDomain string
}

// The limits of a resolv.conf (rule dn-7). Some resolvers abort on longer entries.
const (
	maxNameservers = 3
	maxSearches    = 32
	maxSearchLine  = 2048
	maxSearchEntry = 253
)

// A PodDNS is the DNS configuration of a pod.
type PodDNS struct {
	Config *runtimeapi.DNSConfig

	// Dropped are the entries that exceed the limits of a resolv.conf, in the order of
	// the input, without duplicates.
	Dropped []DroppedDNS

	// Warnings are the events to record when the pod's sandbox is created.
	Warnings []DNSWarning

	// UnknownPolicy reports that the pod's DNS policy is unknown and ClusterFirst was
	// used (rule dn-1).
	UnknownPolicy bool
}

// A DNSWarning is an event of type Warning, for the pod, or for the node if ForNode.
type DNSWarning struct {
	Reason, Message string
	ForNode         bool
}

// A DroppedDNS is an entry that exceeds a limit of a resolv.conf.
type DroppedDNS struct {
	Field  DNSField
	Value  string
	Reason DropReason
}

// String returns the entry and the reason.
func (d DroppedDNS) String() string { return fmt.Sprintf("%s %s: %s", d.Field, d.Value, d.Reason) }

// A DNSField is a line of a resolv.conf.
type DNSField string

// The lines with limits.
const (
	Nameserver DNSField = "nameserver"
	Search     DNSField = "search"
)

// A DropReason is the limit that an entry exceeds.
type DropReason string

// The limits.
const (
	TooMany     DropReason = "too many entries"
	TooLong     DropReason = "the entry is too long"
	LineTooLong DropReason = "the line is too long"
)

// ForPod returns the DNS configuration of pod (rules dn-1 to dn-8). host is the node's
// resolv.conf; nodeIPs are the node's addresses, whose families NoResolvConf uses. The
// arguments are not changed. It returns an error that names a field of the pod's spec
// which cannot be written to a resolv.conf.
func (d DNS) ForPod(pod *v1.Pod, host ResolvConf, nodeIPs []string) (PodDNS, error) {
	var to PodDNS
	base := d.base(pod, host, nodeIPs, &to)
	if own := pod.Spec.DNSConfig; own != nil {
		if err := checkDNSConfig(own); err != nil {
			return PodDNS{}, err
		}
		base.Servers = append(base.Servers, own.Nameservers...)
		base.Searches = append(base.Searches, own.Searches...)
		for _, o := range own.Options {
			text := o.Name
			if o.Value != nil && *o.Value != "" {
				text += ":" + *o.Value
			}
			base.Options = putOption(base.Options, text)
		}
	}
	to.Config = &runtimeapi.DNSConfig{
		Servers: unique(base.Servers), Searches: unique(base.Searches), Options: base.Options,
	}
	to.applyLimits()
	return to, nil
}

// base returns the configuration of the pod's DNS policy; the caller may append to it.
func (d DNS) base(pod *v1.Pod, host ResolvConf, nodeIPs []string, to *PodDNS) ResolvConf {
	ofNode := host.clone()
	if d.NoResolvConf {
		ofNode = ResolvConf{}
	}
	cluster := false
	switch policy := pod.Spec.DNSPolicy; policy {
	case v1.DNSNone:
		return ResolvConf{}
	case v1.DNSDefault:
	case v1.DNSClusterFirstWithHostNet:
		cluster = true
	default:
		to.UnknownPolicy = policy != v1.DNSClusterFirst && policy != ""
		cluster = !pod.Spec.HostNetwork
	}
	if cluster && len(d.ClusterDNS) == 0 {
		cluster = false
		if d.ClusterDomain != "" && pod.Spec.DNSPolicy != "" { // the policy is explicit
			to.warnMissingClusterDNS(pod)
		}
	}
	switch {
	case cluster:
		base := ResolvConf{Servers: slices.Clone(d.ClusterDNS), Options: []string{"ndots:5"}}
		if d.ClusterDomain != "" {
			base.Searches = []string{pod.Namespace + ".svc." + d.ClusterDomain, "svc." + d.ClusterDomain, d.ClusterDomain}
		}
		base.Searches = append(base.Searches, ofNode.Searches...)
		return base
	case d.NoResolvConf:
		return localhost(nodeIPs)
	case !pod.Spec.HostNetwork:
		// As with NoResolvConf, resolvers without a name server use the loopback address; since 1.38 also if
		// the node has none.
		none := len(ofNode.Servers) == 0 && runtime.KubernetesMinor < 38
		if ofNode.Servers = reachable(ofNode.Servers); len(ofNode.Servers) == 0 && !none {
			ofNode.Servers = localhost(nodeIPs).Servers
		}
	}
	return ofNode
}

// reachable removes the name servers of the node that do not work in the network namespace of a
// pod: addresses with a zone, which is an interface of the node, and what is no address.
func reachable(servers []string) []string {
	return slices.DeleteFunc(servers, func(s string) bool {
		ip, err := netip.ParseAddr(s)
		return err != nil || ip.Zone() != ""
	})
}

// warnMissingClusterDNS adds the events for a pod with the policy ClusterFirst on a node
// without ClusterDNS.
func (p *PodDNS) warnMissingClusterDNS(pod *v1.Pod) {
	text := fmt.Sprintf("kubelet does not have ClusterDNS IP configured and cannot create Pod using %q policy. Falling back to %q policy.",
		v1.DNSClusterFirst, v1.DNSDefault)
	p.Warnings = append(p.Warnings,
		DNSWarning{Reason: "MissingClusterDNS", Message: text, ForNode: true},
		DNSWarning{Reason: "MissingClusterDNS", Message: fmt.Sprintf("pod: %q. %s", fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID), text)})
}

// localhost returns the loopback addresses of the node's IP families as name servers,
// as resolvers without a configuration use them.
func localhost(nodeIPs []string) ResolvConf {
	conf := ResolvConf{Searches: []string{"."}}
	for _, s := range nodeIPs {
		if ip, err := netip.ParseAddr(s); err == nil && ip.Unmap().Is4() {
			conf.Servers = append(conf.Servers, "127.0.0.1")
		} else if err == nil {
			conf.Servers = append(conf.Servers, "::1")
		}
	}
	if conf.Servers == nil {
		conf.Servers = []string{"127.0.0.1"}
	}
	return conf
}

// applyLimits drops the entries that exceed the limits, with at most one warning per
// line (rules dn-7, dn-8).
func (p *PodDNS) applyLimits() {
	c := p.Config
	before := len(p.Dropped)
	p.truncate(Nameserver, &c.Servers, min(len(c.Servers), maxNameservers), TooMany)
	if len(p.Dropped) > before {
		p.warn("Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: " +
			strings.Join(c.Servers, " "))
	}

	before = len(p.Dropped)
	c.Searches = slices.DeleteFunc(c.Searches, func(s string) bool {
		if len(s) <= maxSearchEntry {
			return false
		}
		p.Dropped = append(p.Dropped, DroppedDNS{Search, s, TooLong})
		return true
	})
	p.truncate(Search, &c.Searches, min(len(c.Searches), maxSearches), TooMany)
	short, line := len(c.Searches), len(strings.Join(c.Searches, " "))
	for line > maxSearchLine { // the last entries are dropped
		short--
		line -= len(c.Searches[short]) + 1
	}
	p.truncate(Search, &c.Searches, short, LineTooLong)
	if len(p.Dropped) > before {
		p.warn("Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " +
			strings.Join(c.Searches, " "))
	}
}

// truncate shortens a list to n entries.
func (p *PodDNS) truncate(field DNSField, list *[]string, n int, why DropReason) {
	for _, s := range (*list)[n:] {
		p.Dropped = append(p.Dropped, DroppedDNS{field, s, why})
	}
	*list = (*list)[:n]
}

func (p *PodDNS) warn(message string) {
	p.Warnings = append(p.Warnings, DNSWarning{Reason: "DNSConfigForming", Message: message})
}

// checkDNSConfig rejects values that would change the meaning of a resolv.conf, such as
// line breaks. The API server validates them, but static pods do not pass through it.
func checkDNSConfig(c *v1.PodDNSConfig) error {
	for i, s := range c.Nameservers {
		if !oneWord(s) {
			return fmt.Errorf("spec.dnsConfig.nameservers[%d]: %q has spaces or control characters", i, s)
		}
	}
	for i, s := range c.Searches {
		if !oneWord(s) {
			return fmt.Errorf("spec.dnsConfig.searches[%d]: %q has spaces or control characters", i, s)
		}
	}
	for i, o := range c.Options {
		if o.Name == "" {
			return fmt.Errorf("spec.dnsConfig.options[%d]: has no name", i)
		}
		if !oneWord(o.Name) || o.Value != nil && !oneWord(*o.Value) {
			return fmt.Errorf("spec.dnsConfig.options[%d]: %q has spaces or control characters in its name or value", i, o.Name)
		}
	}
	return nil
}

// oneWord reports whether s has no white space and no control characters, so that it
// remains one field of one line.
func oneWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// putOption replaces the option of the same name, or appends it.
func putOption(options []string, option string) []string {
	name, _, _ := strings.Cut(option, ":")
	for i, o := range options {
		if of, _, _ := strings.Cut(o, ":"); of == name {
			options[i] = option
			return options
		}
	}
	return append(options, option)
}

// unique removes empty and repeated entries.
func unique(list []string) []string {
	seen := map[string]bool{"": true}
	return slices.DeleteFunc(list, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}
