package lab

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A Listing contains all sandboxes and containers of a runtime, listed without the code
// under test: tests compare it with the results of that code.
type Listing struct {
	Sandboxes  []*runtimeapi.PodSandbox
	Containers []*runtimeapi.Container

	// Crictl is the output of `crictl pods` and `crictl ps --all` if that program is in
	// PATH, otherwise empty. It is for test logs.
	Crictl string
}

// List lists all sandboxes and containers of the runtime at endpoint, in any state,
// through a separate CRI connection.
func List(ctx context.Context, endpoint string) (Listing, error) {
	rt, err := dial(ctx, endpoint)
	if err != nil {
		return Listing{}, fmt.Errorf("lab: list: %w", err)
	}
	defer rt.Close(ctx)
	var l Listing
	if l.Sandboxes, err = rt.ListPodSandbox(ctx, nil); err != nil {
		return Listing{}, fmt.Errorf("lab: list sandboxes: %w", err)
	}
	if l.Containers, err = rt.ListContainers(ctx, nil); err != nil {
		return Listing{}, fmt.Errorf("lab: list containers: %w", err)
	}
	l.Crictl = crictl(ctx, endpoint)
	return l, nil
}

func crictl(ctx context.Context, endpoint string) string {
	bin, err := exec.LookPath("crictl")
	if err != nil {
		return ""
	}
	var all strings.Builder
	for _, args := range [][]string{{"pods"}, {"ps", "--all"}} {
		out, err := exec.CommandContext(ctx, bin, append([]string{"--runtime-endpoint", endpoint}, args...)...).CombinedOutput()
		all.Write(out)
		if err != nil {
			fmt.Fprintf(&all, "crictl %v: %v\n", args, err)
		}
	}
	return all.String()
}

// String returns two tables, newest last, followed by crictl's.
func (l Listing) String() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SANDBOX\tPOD\tATTEMPT\tSTATE\tCREATED\tLABELS")
	for _, s := range slices.SortedFunc(slices.Values(l.Sandboxes), older[*runtimeapi.PodSandbox]) {
		m := s.GetMetadata()
		fmt.Fprintf(w, "%s\t%s/%s\t%d\t%s\t%s\t%s\n", short(s.Id), m.GetNamespace(), m.GetName(), m.GetAttempt(),
			strings.TrimPrefix(s.State.String(), "SANDBOX_"), clock(s.CreatedAt), labels(s.Labels))
	}
	fmt.Fprintln(w, "\nCONTAINER\tNAME\tATTEMPT\tSTATE\tCREATED\tSANDBOX\tLABELS")
	for _, c := range slices.SortedFunc(slices.Values(l.Containers), older[*runtimeapi.Container]) {
		m := c.GetMetadata()
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", short(c.Id), m.GetName(), m.GetAttempt(),
			strings.TrimPrefix(c.State.String(), "CONTAINER_"), clock(c.CreatedAt), short(c.PodSandboxId), labels(c.Labels))
	}
	w.Flush()
	return out.String() + l.Crictl
}

// older orders by time of creation, in nanoseconds since 1970.
func older[T interface{ GetCreatedAt() int64 }](a, b T) int {
	return int(min(1, max(-1, a.GetCreatedAt()-b.GetCreatedAt())))
}

func short(id string) string { return id[:min(13, len(id))] }

func clock(nanoseconds int64) string {
	return time.Unix(0, nanoseconds).UTC().Format("15:04:05.000")
}

func labels(m map[string]string) string {
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, k+"="+m[k])
	}
	return strings.Join(pairs, ",")
}
