package trace

import (
	"cmp"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/sim/cluster"
)

var podColumns = []string{
	"name", "arrival_s", "duration_s", "exit_code", "restart_policy", "recreate",
	"cpu_milli", "memory_mib", "disk_mib", "limit_cpu_milli", "limit_memory_mib", "limit_disk_mib",
	"used_memory_mib", "used_disk_mib", "priority", "image",
}

// ReadPods reads pods from a CSV file with the columns in the package documentation. The
// error names the line and the column.
func ReadPods(r io.Reader) (pods []cluster.Pod, err error) {
	err = read(r, podColumns, []string{"arrival_s"}, func(r *row) error {
		pods = append(pods, r.pod())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return pods, nil
}

func (r *row) pod() cluster.Pod {
	p := cluster.Pod{
		Name: r.fields["name"], Arrival: r.seconds("arrival_s"), RunTime: r.seconds("duration_s"),
		ExitCode:      int32(r.integer("exit_code", 0, 255)),
		RestartPolicy: v1.RestartPolicy(r.fields["restart_policy"]),
		Requests:      cluster.Resources{CPU: r.integer("cpu_milli", 0, maxMilli), Memory: r.mib("memory_mib"), Disk: r.mib("disk_mib")},
		Limits:        cluster.Resources{CPU: r.integer("limit_cpu_milli", 0, maxMilli), Memory: r.mib("limit_memory_mib"), Disk: r.mib("limit_disk_mib")},
		Memory:        r.usage("used_memory_mib"), Disk: r.usage("used_disk_mib"),
		Priority: int32(r.integer("priority", math.MinInt32, math.MaxInt32)),
		Image:    r.fields["image"],
	}
	if r.fields["arrival_s"] == "" {
		r.fail("arrival_s", "is empty")
	}
	if r.fields["duration_s"] != "" {
		p.RunTime = max(p.RunTime, time.Millisecond) // zero means without end
	}
	if p.RestartPolicy == "" && p.RunTime > 0 {
		p.RestartPolicy = v1.RestartPolicyNever
	}
	switch p.RestartPolicy {
	case "", v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever:
	default:
		r.fail("restart_policy", "%.40q is not Always, OnFailure or Never", p.RestartPolicy)
	}
	var err error
	if p.Recreate, err = strconv.ParseBool(cmp.Or(r.fields["recreate"], "false")); err != nil {
		r.fail("recreate", "%.40q is not true or false", r.fields["recreate"])
	}
	return p
}

// usage returns the usage in a field; nil if it is empty.
func (r *row) usage(column string) cluster.Usage {
	text := r.fields[column]
	if text == "" {
		return nil
	}
	if !strings.Contains(text, ":") {
		return cluster.Constant(r.mib(column))
	}
	var steps []cluster.Step
	for field := range strings.FieldsSeq(text) {
		age, amount, _ := strings.Cut(field, ":")
		at, ok := parseSeconds(age)
		n, err := strconv.ParseUint(amount, 10, 63)
		switch {
		case !ok || err != nil || n > maxMiB:
			r.fail(column, "%.40q is not seconds:MiB", field)
			return nil
		case len(steps) > 0 && at <= steps[len(steps)-1].Age:
			r.fail(column, "age %s is not after the one before", age)
			return nil
		}
		steps = append(steps, cluster.Step{Age: at, Bytes: int64(n) << 20})
	}
	return cluster.Steps(steps)
}
