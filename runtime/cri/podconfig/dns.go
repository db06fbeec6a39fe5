package podconfig

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// DNS is what the resolv.conf of containers is made from (section 16 of the
// node's behaviour). The zero value gives pods the node's own.
type DNS struct {
	// ResolvConf is the node's file; who reads it hands its content to For.
	// Empty: /etc/resolv.conf. This differs from the kubelet, where an empty
	// resolvConf is what NoResolvConf is here (dn-4).
	ResolvConf string

	// NoResolvConf gives pods nothing of the node's: those that would get it
	// ask a server on the machine they run on, and search nowhere (dn-4).
	NoResolvConf bool

	// ClusterDNS are the servers of pods with the policy ClusterFirst. Empty:
	// those get the node's, as with Default, and a warning (dn-3) if there is a
	// ClusterDomain: a node without either belongs to no cluster, and nothing
	// is missing there.
	ClusterDNS []string

	// ClusterDomain ends the names of a cluster's services: "cluster.local".
	// Empty: pods search where the node does (dn-2).
	ClusterDomain string
}

// What a resolv.conf may hold (dn-7). A longer entry makes some resolvers abort.
const (
	maxNameservers = 3
	maxSearches    = 32
	maxSearchLine  = 2048
	maxSearchEntry = 253
)

// A PodDNS is the DNS configuration of a pod.
type PodDNS struct {
	Config *runtimeapi.DNSConfig

	// Dropped is what Config lacks of what was asked for, in the order asked.
	// Duplicates are not in it: nothing is lost with them.
	Dropped []DroppedDNS

	// Warnings are the events to record when the pod's sandbox is made.
	Warnings []DNSWarning

	// UnknownPolicy says that the pod's policy is none that is known, and was
	// taken for ClusterFirst (dn-1). It is for the log.
	UnknownPolicy bool
}

// A DNSWarning is an event of type Warning, about the pod or about the node.
type DNSWarning struct {
	Reason, Message string
	OfNode          bool
}

// A DroppedDNS is an entry that did not fit into a resolv.conf.
type DroppedDNS struct {
	Field  DNSField
	Value  string
	Reason DropReason
}

// String returns the entry and why it was dropped.
func (d DroppedDNS) String() string { return fmt.Sprintf("%s %s: %s", d.Field, d.Value, d.Reason) }

// A DNSField is a line of a resolv.conf.
type DNSField string

// The lines that have limits.
const (
	Nameserver DNSField = "nameserver"
	Search     DNSField = "search"
)

// A DropReason is the limit that an entry did not fit in (dn-7).
type DropReason string

// The limits.
const (
	TooMany     DropReason = "too many entries"
	TooLong     DropReason = "the entry is too long"
	LineTooLong DropReason = "the line is too long"
)

// For returns the DNS configuration of pod (dn-1 … dn-8). host is what the node's
// file says, and nodeIPs are the node's addresses, which matter with
// NoResolvConf only. It changes none of its arguments. The error names what the
// pod's spec has that can't be written into a resolv.conf.
func (d DNS) For(pod *v1.Pod, host ResolvConf, nodeIPs []string) (PodDNS, error) {
	var to PodDNS
	base := d.base(pod, host, nodeIPs, &to)
	if own := pod.Spec.DNSConfig; own != nil { // dn-6
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
	to.fit()
	return to, nil
}

// base returns what a pod gets by its policy, to be added to.
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
		if d.ClusterDomain != "" && pod.Spec.DNSPolicy != "" { // it did ask for them
			to.missing(pod)
		}
	}
	switch {
	case cluster: // dn-2
		base := ResolvConf{Servers: slices.Clone(d.ClusterDNS), Options: []string{"ndots:5"}}
		if d.ClusterDomain != "" {
			base.Searches = []string{pod.Namespace + ".svc." + d.ClusterDomain, "svc." + d.ClusterDomain, d.ClusterDomain}
		}
		base.Searches = append(base.Searches, ofNode.Searches...)
		return base
	case d.NoResolvConf: // dn-4
		return localhost(nodeIPs)
	default:
		return ofNode
	}
}

// missing records that the pod can't have the cluster's servers (dn-3).
func (p *PodDNS) missing(pod *v1.Pod) {
	text := fmt.Sprintf("kubelet does not have ClusterDNS IP configured and cannot create Pod using %q policy. Falling back to %q policy.",
		v1.DNSClusterFirst, v1.DNSDefault)
	p.Warnings = append(p.Warnings,
		DNSWarning{Reason: "MissingClusterDNS", Message: text, OfNode: true},
		DNSWarning{Reason: "MissingClusterDNS", Message: fmt.Sprintf("pod: %q. %s", fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID), text)})
}

// localhost is what a resolver without a configuration asks: the machine itself,
// in the families that the node has (dn-4).
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

// fit drops what is over the limits, and warns once of each line (dn-7, dn-8).
func (p *PodDNS) fit() {
	c := p.Config
	before := len(p.Dropped)
	p.cut(Nameserver, &c.Servers, min(len(c.Servers), maxNameservers), TooMany)
	if len(p.Dropped) > before {
		p.forming("Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: " +
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
	p.cut(Search, &c.Searches, min(len(c.Searches), maxSearches), TooMany)
	short, line := len(c.Searches), len(strings.Join(c.Searches, " "))
	for line > maxSearchLine { // from the end until it fits (dn-8)
		short--
		line -= len(c.Searches[short]) + 1
	}
	p.cut(Search, &c.Searches, short, LineTooLong)
	if len(p.Dropped) > before {
		p.forming("Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " +
			strings.Join(c.Searches, " "))
	}
}

// cut shortens a list to n entries.
func (p *PodDNS) cut(field DNSField, list *[]string, n int, why DropReason) {
	for _, s := range (*list)[n:] {
		p.Dropped = append(p.Dropped, DroppedDNS{field, s, why})
	}
	*list = (*list)[:n]
}

func (p *PodDNS) forming(message string) {
	p.Warnings = append(p.Warnings, DNSWarning{Reason: "DNSConfigForming", Message: message})
}

// checkDNSConfig refuses what would be read as something else in a resolv.conf,
// such as a line break and another line. The API server has checked this; a
// manifest on a disk may have been checked by nobody.
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

// oneWord reports whether s stays one word of one line in a file.
func oneWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// putOption puts an option in the place of one of the same name, or at the end
// (dn-6).
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

// unique drops what is empty and what was there before.
func unique(list []string) []string {
	seen := map[string]bool{"": true}
	return slices.DeleteFunc(list, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}
