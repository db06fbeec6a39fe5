package cri

import (
	"fmt"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// DNS is what the resolv.conf of containers is made from (section 16 of the
// node's behaviour). The zero value gives pods the node's own.
type DNS struct {
	// ResolvConf is the node's. Empty: /etc/resolv.conf. A file that does not
	// exist gives pods no name servers of the node's.
	ResolvConf string

	// ClusterDNS are the servers of pods with the policy ClusterFirst. Empty:
	// those get the node's, as with Default.
	ClusterDNS []string

	// ClusterDomain ends the names of a cluster's services: "cluster.local".
	ClusterDomain string
}

// What a resolv.conf may hold (dn-7).
const (
	maxNameservers = 3
	maxSearches    = 32
	maxSearchLine  = 2048
)

// For returns the DNS configuration of pod (dn-1 … dn-8).
func (d DNS) For(pod *v1.Pod) (*runtimeapi.DNSConfig, error) {
	config := new(runtimeapi.DNSConfig)
	if pod.Spec.DNSPolicy != v1.DNSNone {
		host, err := d.host()
		if err != nil {
			return nil, err
		}
		config = host
		if d.clusterFirst(pod) {
			config = d.cluster(pod.Namespace, host)
		}
	}
	if own := pod.Spec.DNSConfig; own != nil {
		config.Servers = append(config.Servers, own.Nameservers...)
		config.Searches = append(config.Searches, own.Searches...)
		for _, o := range own.Options {
			text := o.Name
			if o.Value != nil && *o.Value != "" {
				text += ":" + *o.Value
			}
			config.Options = putOption(config.Options, text)
		}
	}
	config.Servers = unique(config.Servers)
	config.Searches = unique(config.Searches)
	config.Servers = config.Servers[:min(len(config.Servers), maxNameservers)]
	config.Searches = config.Searches[:min(len(config.Searches), maxSearches)]
	for len(strings.Join(config.Searches, " ")) > maxSearchLine {
		config.Searches = config.Searches[:len(config.Searches)-1] // dn-8
	}
	return config, nil
}

// clusterFirst reports whether pod asks the cluster's servers, and there are
// any (dn-1, dn-3).
func (d DNS) clusterFirst(pod *v1.Pod) bool {
	if len(d.ClusterDNS) == 0 {
		return false
	}
	switch pod.Spec.DNSPolicy {
	case v1.DNSDefault:
		return false
	case v1.DNSClusterFirstWithHostNet:
		return true
	default:
		return !pod.Spec.HostNetwork
	}
}

// cluster returns the configuration of the cluster's servers (dn-2).
func (d DNS) cluster(namespace string, host *runtimeapi.DNSConfig) *runtimeapi.DNSConfig {
	config := &runtimeapi.DNSConfig{Servers: slices.Clone(d.ClusterDNS), Options: []string{"ndots:5"}}
	if d.ClusterDomain != "" {
		config.Searches = []string{namespace + ".svc." + d.ClusterDomain, "svc." + d.ClusterDomain, d.ClusterDomain}
	}
	config.Searches = append(config.Searches, host.Searches...)
	return config
}

// host reads the node's own configuration.
func (d DNS) host() (*runtimeapi.DNSConfig, error) {
	path := d.ResolvConf
	if path == "" {
		path = "/etc/resolv.conf"
	}
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return new(runtimeapi.DNSConfig), nil
	}
	if err != nil {
		return nil, err
	}
	config, err := parseResolvConf(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return config, nil
}

// parseResolvConf reads a resolv.conf (dn-5).
func parseResolvConf(text string) (*runtimeapi.DNSConfig, error) {
	config := new(runtimeapi.DNSConfig)
	for n, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		switch fields[0] {
		case "nameserver":
			if len(fields) < 2 {
				return nil, fmt.Errorf("line %d: nameserver without an address", n+1)
			}
			config.Servers = append(config.Servers, fields[1])
		case "search":
			config.Searches = nil // the last line wins
			for _, s := range fields[1:] {
				if s != "." {
					config.Searches = append(config.Searches, strings.TrimSuffix(s, "."))
				}
			}
		case "options":
			for _, o := range fields[1:] {
				config.Options = putOption(config.Options, o)
			}
		}
	}
	return config, nil
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
