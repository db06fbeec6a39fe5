//go:build unix

package footprint

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
	"github.com/kubeparts/kubeparts/test/internal/markdown"
)

// Command returns the subcommand.
func Command() cli.Command {
	return cli.NewCommand("footprint", "memory, CPU and calls of the node and of a kubelet", parseFlags, footprint)
}

// maxLoad is the load average above which times of this machine are worthless.
const maxLoad = 3

// footprint measures, and returns the exit code.
func footprint(ctx context.Context, o options, out io.Writer) int {
	say := cli.NewPrinter(out)
	if err := prepare(ctx, &o, out, say); err != nil {
		say("failed to prepare: %v", err)
		return 2
	}
	if o.trace {
		return traceAll(ctx, o, out, say)
	}
	if o.contend {
		return contend(ctx, o, out, say)
	}
	r := &report{on: time.Now(), options: o, values: map[cell][]float64{}, versions: map[string]string{
		"containerd": version(lab.FindContainerd()), agentName: version(o.agent), kubeletName: version(o.kubelet),
	}}
	for run := range o.repeat {
		for _, pods := range o.pods {
			for _, subject := range o.only {
				say("run %d of %d: %s, %d pods (load %.1f)", run+1, o.repeat, subject, pods, labenv.Load())
				r.loads = append(r.loads, labenv.Load())
				f, err := r.measure(ctx, subject, pods)
				if err != nil {
					say("failed to measure %s with %d pods: %v", subject, pods, err)
					return 1
				}
				r.add(pods, subject, f)
			}
		}
	}
	text := r.markdown()
	fmt.Fprintf(out, "\n%s", text)
	for _, l := range r.loads {
		if l > maxLoad {
			say("the machine was busy (load %.1f): repeat this before publishing a time", l)
			break
		}
	}
	if err := markdown.Write(o.report, text, say); err != nil {
		say("%v", err)
		return 1
	}
	return 0
}

// traceAll traces starts, and returns the exit code.
func traceAll(ctx context.Context, o options, out io.Writer, say func(string, ...any)) int {
	for run := range o.repeat {
		for _, pods := range o.pods {
			if pods == 0 && o.profiles == "" {
				continue // nothing starts
			}
			say("run %d of %d: trace of %d pods (load %.1f)", run+1, o.repeat, pods, labenv.Load())
			var log bytes.Buffer
			if err := lab.Program(ctx, &log, func(t testing.TB) error { return traceStart(ctx, t, o, pods, out) }); err != nil {
				say("failed to trace %d pods: %v\n%s", pods, err, log.Bytes())
				return 1
			}
		}
	}
	return 0
}

// prepare builds the agent, and checks that the machine has what is required.
func prepare(ctx context.Context, o *options, out io.Writer, say func(string, ...any)) error {
	return lab.Program(ctx, out, func(t testing.TB) error {
		needs := []string{"containerd"}
		if o.cluster {
			needs = append(needs, "kubernetes")
		}
		if err := os.Setenv("KUBEPARTS_CONTAINERD", lab.FindContainerd()); err != nil {
			return err
		}
		lab.Need(t, needs...)
		if o.agent != "" || o.trace {
			return nil
		}
		say("building the agent")
		var err error
		o.agent, err = labenv.BuildCached(ctx, "footprint")
		return err
	})
}

// version returns the version that a program prints, such as "v1.37.2"; empty if it prints none.
func version(binary string) string {
	if binary == "" {
		return ""
	}
	printed, err := exec.Command(binary, "--version").Output()
	if err != nil {
		return ""
	}
	return findVersion(string(printed))
}

// findVersion returns the first word that begins with a digit, or with a "v" and a digit.
func findVersion(text string) string {
	for word := range strings.FieldsSeq(text) {
		if digits := strings.TrimPrefix(word, "v"); digits != "" && digits[0] >= '0' && digits[0] <= '9' {
			return word
		}
	}
	return ""
}

// measure measures one program once. The world is removed before it returns.
func (r *report) measure(ctx context.Context, subject string, pods int) (best figures, err error) {
	once := func(measure func(t testing.TB) (figures, error)) (f figures, err error) {
		var log bytes.Buffer
		err = lab.Program(ctx, &log, func(t testing.TB) (err error) {
			f, err = measure(t)
			return err
		})
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, log.Bytes())
		}
		return f, err
	}
	o := r.options
	switch subject {
	case agentName:
		return once(func(t testing.TB) (figures, error) { return measureNode(ctx, t, o, subject, o.agent, pods) })
	case kubeletName:
		return once(func(t testing.TB) (figures, error) { return measureNode(ctx, t, o, subject, o.kubelet, pods) })
	}
	if pods == 0 {
		return nil, nil
	}
	running := figures{}
	for i, c := range concurrencies {
		f, err := once(func(t testing.TB) (figures, error) {
			return measureBare(ctx, t, o, pods, c, running, i == len(concurrencies)-1)
		})
		if err != nil {
			return nil, err
		}
		f[concurrency] = float64(c)
		if best == nil || f[allRun] < best[allRun] {
			best = f
		}
	}
	maps.Copy(best, running)
	return best, nil
}
