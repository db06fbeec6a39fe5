package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Report returns the Markdown document of the comparison. reasons explain the
// differences, from Explain.
func Report(scenarios []*Scenario, differences []Difference, reasons []string) string {
	type call struct{ scenario, name string }
	different := map[call]bool{}
	calls := map[string][]call{} // by reason, in order
	for i, d := range differences {
		c := call{d.Scenario, d.Call}
		different[c] = true
		if reason := reasons[i]; !slices.Contains(calls[reason], c) {
			calls[reason] = append(calls[reason], c)
		}
	}
	var rows strings.Builder
	total := 0
	for _, s := range scenarios {
		count := 0
		for _, c := range s.Calls {
			if different[call{s.Name, c.Name}] {
				count++
			}
		}
		total += len(s.Calls)
		fmt.Fprintf(&rows, "| [%s](../kube/apitest/internal/conformance/testdata/scenarios/%s.txt) | %s | %d | %d | %d |\n",
			s.Name, s.Name, strings.Join(strings.Fields(s.About), " "), len(s.Calls), len(s.Calls)-count, count)
	}
	fields := ""
	if n := len(differences); n > 0 {
		fields = fmt.Sprintf(", in %d fields", n)
	}

	var out strings.Builder
	fmt.Fprintf(&out, `# apitest and kube-apiserver

[kube/apitest](../kube/apitest) is compared with kube-apiserver 1.37: the same %d requests to both, in %d scenarios, and the code,
headers and body of each response. **%d responses are equal and %d differ%s.**

Resource versions are compared by their order; UIDs, times, generated names and continue tokens only by their presence. Not compared
are the protobuf encoding, and watches with initial events, which kube-apiserver rejects with the etcd of Debian 12.

The requests and the responses of kube-apiserver are in [testdata](../kube/apitest/internal/conformance/testdata/scenarios). The
step `+"`cluster`"+` of CI compares them with a real kube-apiserver, and the unit tests with apitest; a difference that is not listed here
fails them, as does a listed one that no longer exists. This document is generated:
`+"`go test ./kube/apitest/internal/conformance -update`"+`.

## Scenarios

| scenario | | requests | equal | different |
|---|---|---|---|---|
%s
## Differences

`, total, len(scenarios), total-len(different), len(different), fields, rows.String())
	if len(calls) == 0 {
		out.WriteString("None.\n")
	}
	for _, reason := range slices.SortedFunc(maps.Keys(calls), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(calls[b]), len(calls[a])), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&out, "- %s (%d)\n", reason, len(calls[reason]))
		for _, s := range scenarios {
			var names []string
			for _, c := range calls[reason] {
				if c.scenario == s.Name {
					names = append(names, c.name)
				}
			}
			if len(names) > 0 {
				fmt.Fprintf(&out, "  - %s: %s\n", s.Name, strings.Join(names, "; "))
			}
		}
	}
	return out.String()
}
