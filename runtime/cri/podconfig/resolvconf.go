package podconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxResolvConf is the maximum size of a resolv.conf in bytes (rule dn-5).
const MaxResolvConf = 10 << 20

// A ResolvConf is the content of a resolv.conf.
type ResolvConf struct {
	Servers  []string
	Searches []string
	Options  []string // "ndots:5", "rotate"
}

func (c ResolvConf) clone() ResolvConf {
	return ResolvConf{slices.Clone(c.Servers), slices.Clone(c.Searches), slices.Clone(c.Options)}
}

// ParseResolvConf parses a resolv.conf (rule dn-5). Unknown lines are ignored; the last
// search line and the last value of each option are used. It returns an error if text is
// longer than MaxResolvConf or a nameserver line has no address.
func ParseResolvConf(text string) (ResolvConf, error) {
	var conf ResolvConf
	if len(text) > MaxResolvConf {
		return conf, fmt.Errorf("more than %d bytes", MaxResolvConf)
	}
	at := map[string]int{} // index of each option by name
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		switch fields[0] {
		case "nameserver":
			if len(fields) < 2 {
				return ResolvConf{}, fmt.Errorf("line %d: nameserver without an address", number)
			}
			conf.Servers = append(conf.Servers, fields[1])
		case "search":
			conf.Searches = nil
			for _, s := range fields[1:] {
				if s != "." {
					conf.Searches = append(conf.Searches, strings.TrimSuffix(s, "."))
				}
			}
		case "options":
			for _, o := range fields[1:] {
				name, _, _ := strings.Cut(o, ":")
				if i, ok := at[name]; ok {
					conf.Options[i] = o
					continue
				}
				at[name] = len(conf.Options)
				conf.Options = append(conf.Options, o)
			}
		}
	}
	return conf, nil
}

// ReasonCheckLimits is the reason of the event that reports an error of CheckLimits.
const ReasonCheckLimits = "CheckLimitsForResolvConf"

// CheckLimits returns an error if the node's resolv.conf exceeds the limits together with
// the cluster's search domains, which precede its own (rule dn-9). host and readErr are the
// results of reading the file. An agent calls it once at startup and records the error as a
// Warning event of the node.
func (d DNS) CheckLimits(host ResolvConf, readErr error) error {
	if d.NoResolvConf {
		return nil
	}
	path := d.Path()
	if readErr != nil {
		return readErr // with the path
	}
	limit := maxSearches
	if d.ClusterDomain != "" {
		limit -= 3 // the search domains of the cluster
	}
	if len(host.Searches) > limit {
		//lint:ignore ST1005 dn-9: word for word
		return fmt.Errorf("Resolv.conf file '%s' contains search line consisting of more than %d domains!", path, limit)
	}
	for _, s := range host.Searches {
		if len(s) > maxSearchEntry {
			//lint:ignore ST1005 dn-9: word for word
			return fmt.Errorf("Resolv.conf file %q contains a search path which length is more than allowed %d chars!", path, maxSearchEntry)
		}
	}
	if len(strings.Join(host.Searches, " ")) > maxSearchLine {
		//lint:ignore ST1005 dn-9: word for word
		return fmt.Errorf("Resolv.conf file '%s' contains search line which length is more than allowed %d chars!", path, maxSearchLine)
	}
	return nil
}

// Path returns the path of the node's resolv.conf.
func (d DNS) Path() string {
	if d.ResolvConf == "" {
		return "/etc/resolv.conf"
	}
	return d.ResolvConf
}

// Validate returns an error if the configuration cannot be written to a resolv.conf.
func (d DNS) Validate() error {
	for _, s := range d.ClusterDNS {
		if s == "" || !oneWord(s) {
			return fmt.Errorf("ClusterDNS: invalid address %q", s)
		}
	}
	if !oneWord(d.ClusterDomain) {
		return fmt.Errorf("ClusterDomain: invalid domain %q", d.ClusterDomain)
	}
	if d.NoResolvConf && d.ResolvConf != "" {
		return errors.New("ResolvConf and NoResolvConf are mutually exclusive")
	}
	return nil
}
