// Policy compares rankings of pods for eviction: the kubelet's, and one by age. Each
// ranking runs on the same simulated nodes, drawn from 100 seeds, in seconds:
//
//	go run ./examples/policy
//	go run ./examples/policy --seeds 1000
//
// To evaluate another ranking, add it to rankings; it is a function of values. node.go has
// the simulated nodes and the measured values.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/kubeparts/kubeparts/eviction"
)

// rankings are the compared rankings. If rank is nil, the kubelet's is used.
var rankings = []struct {
	name string
	rank func(s eviction.Signal, a, b *eviction.Candidate) (order int, reason string)
}{
	{name: "kubelet"},
	// Among the pods that exceed their requests and have the lowest priority, the
	// youngest is evicted and not the one with the largest excess: it has done least work.
	{name: "youngest", rank: func(_ eviction.Signal, a, b *eviction.Candidate) (int, string) {
		return cmp.Or(
			trueFirst(a.Excess > 0, b.Excess > 0),
			cmp.Compare(a.Priority, b.Priority),
			b.Created.Compare(a.Created),
		), "least work lost"
	}},
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

func main() {
	seeds := flag.Int("seeds", 100, "`number` of nodes")
	flag.Parse()
	if *seeds < 1 {
		fmt.Fprintln(os.Stderr, "policy: --seeds must be positive")
		os.Exit(2)
	}
	writeTable(os.Stdout, compare(*seeds))
}

// compare returns the outcome of each ranking on each node.
func compare(seeds int) [][]outcome {
	results := make([][]outcome, len(rankings))
	for i, r := range rankings {
		for seed := range seeds {
			results[i] = append(results[i], simulate(uint64(seed), r.rank))
		}
	}
	return results
}

// writeTable writes the median and the ninth decile of each measure, and a comparison with
// the first ranking node by node, because nodes differ more than rankings.
func writeTable(out io.Writer, results [][]outcome) {
	fmt.Fprintf(out, "%d nodes for 12 hours; less is better\n\n", len(results[0]))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\tranking\tmedian\t90 %%\tless than %s\tmore\t\n", rankings[0].name)
	for m, measure := range measures {
		for i, r := range rankings {
			values := make([]float64, 0, len(results[i]))
			less, more := 0, 0
			for seed, o := range results[i] {
				values = append(values, o[m])
				switch cmp.Compare(o[m], results[0][seed][m]) {
				case -1:
					less++
				case 1:
					more++
				}
			}
			slices.Sort(values)
			fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%d\t%d\t\n", measure, r.name, values[len(values)/2], values[len(values)*9/10], less, more)
			measure = ""
		}
	}
	w.Flush()
}
