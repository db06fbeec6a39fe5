package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// given are flags of kube-apiserver or etcd by their names without dashes.
type given map[string]string

// parseGiven parses --name=value, --name value and --name. Those not in known have no effect
// here, so that a test which configures a real server needs no change; their names are
// returned. --help prints help.
func parseGiven(program string, args, known []string, help string, out io.Writer) (given, []string, error) {
	values := given{}
	var ignored []string
	for i := 0; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i], "-")
		name = strings.TrimPrefix(name, "-")
		if !isFlag {
			return nil, nil, fmt.Errorf("unexpected argument %q: want --name=value", args[i])
		}
		name, value, ok := strings.Cut(name, "=")
		if name == "help" || name == "h" {
			_, _ = fmt.Fprintf(out, "%s, as testcluster provides it for tests.\n\nFlags:\n%s", program, help)
			return nil, nil, flag.ErrHelp
		}
		if !ok && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
			value = args[i]
		}
		values[name] = value
		if !slices.Contains(known, name) {
			ignored = append(ignored, name)
		}
	}
	return values, ignored, nil
}
