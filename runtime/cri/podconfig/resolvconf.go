package podconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxResolvConf is how many bytes of a resolv.conf are read: a larger one is an
// error (dn-5).
const MaxResolvConf = 10 << 20

// A ResolvConf is what a resolv.conf says.
type ResolvConf struct {
	Servers  []string
	Searches []string
	Options  []string // "ndots:5", "rotate"
}

func (c ResolvConf) clone() ResolvConf {
	return ResolvConf{slices.Clone(c.Servers), slices.Clone(c.Searches), slices.Clone(c.Options)}
}

// ParseResolvConf reads a resolv.conf (dn-5): what it doesn't know it skips, the
// last search line wins, and an option that comes again counts in its last form.
func ParseResolvConf(text string) (ResolvConf, error) {
	var conf ResolvConf
	if len(text) > MaxResolvConf {
		return conf, fmt.Errorf("more than %d bytes", MaxResolvConf)
	}
	at := map[string]int{} // where each option is
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

// ReasonCheckLimits is the reason of the event that tells of what Check finds.
const ReasonCheckLimits = "CheckLimitsForResolvConf"

// Check tells whether the node's file leaves room for what pods of the cluster
// search in first (dn-9): the first finding, or nil. readErr is why the file
// could not be read or parsed, if it could not. An agent asks once, when it
// starts, and records the finding as a Warning event of the node.
func (d DNS) Check(host ResolvConf, readErr error) error {
	if d.NoResolvConf {
		return nil
	}
	path := d.Path()
	if readErr != nil {
		return fmt.Errorf("%s: %w", path, readErr)
	}
	limit := maxSearches
	if d.ClusterDomain != "" {
		limit -= 3 // which pods search in before those of the node
	}
	if n := len(host.Searches); n > limit {
		return fmt.Errorf("%s searches in %d domains; pods can have %d of them", path, n, limit)
	}
	for _, s := range host.Searches {
		if len(s) > maxSearchEntry {
			return fmt.Errorf("%s searches in a domain of %d characters; pods can have %d", path, len(s), maxSearchEntry)
		}
	}
	if n := len(strings.Join(host.Searches, " ")); n > maxSearchLine {
		return fmt.Errorf("%s has a search line of %d characters; pods can have %d", path, n, maxSearchLine)
	}
	return nil
}

// Path returns the node's file.
func (d DNS) Path() string {
	if d.ResolvConf == "" {
		return "/etc/resolv.conf"
	}
	return d.ResolvConf
}

// Validate refuses a configuration that no resolv.conf can hold.
func (d DNS) Validate() error {
	for _, s := range d.ClusterDNS {
		if s == "" || !oneWord(s) {
			return fmt.Errorf("ClusterDNS: %q is no address", s)
		}
	}
	if !oneWord(d.ClusterDomain) {
		return fmt.Errorf("ClusterDomain: %q is no domain", d.ClusterDomain)
	}
	if d.NoResolvConf && d.ResolvConf != "" {
		return errors.New("both ResolvConf and NoResolvConf")
	}
	return nil
}
