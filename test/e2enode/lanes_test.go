package e2enode

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTestsAreDividedByTheirCost(t *testing.T) {
	cost := func(name string) time.Duration { return time.Duration(len(name)) * time.Second }
	names := []string{
		"[sig-node] 1 2 3 4 5 6 7 a", "[sig-node] 1 2 3 4 5 6 7 b", "[sig-node] 1 2 3 4 5 6 7 c",
		"[sig-node] x", "[sig-node] y", "[sig-node] z",
	}
	parts := divide(names, 2, cost)
	assert.Len(t, parts, 2)
	assert.ElementsMatch(t, names[:3], parts[0], "tests of one container stay together, and are the most expensive")
	assert.ElementsMatch(t, names[3:], parts[1])
	assert.Len(t, divide(names, 9, cost), 4, "no part is empty")
	assert.Empty(t, divide(nil, 2, cost))
	for range 5 {
		assert.Equal(t, parts, divide(names, 2, cost), "the same for the same tests")
	}
}

func TestJobsOf(t *testing.T) {
	all := results{}
	for i := range 100 {
		all.merge(kubelet, []result{{name: fmt.Sprintf("[sig-node] %d [Serial]", i), is: passed, took: time.Minute}})
	}
	all.merge(agent, []result{{name: "[sig-node] 7 [Serial]", is: passed, took: time.Second}})
	o := options{focus: regexp.MustCompile("Serial"), skip: "sig-node. 8 ", subjects: []subject{kubelet, agent}}
	count := func(jobs []job) (of map[subject]int) {
		of = map[subject]int{}
		for _, j := range jobs {
			assert.NotEmpty(t, j.tests)
			of[j.subject] += len(j.tests)
			assert.False(t, slices.Contains(j.tests, "[sig-node] 8 [Serial]"))
		}
		return of
	}
	jobs := jobsOf(all, o)
	assert.Len(t, jobs, 20, "100 minutes in parts of ten, with two programs")
	assert.Equal(t, map[subject]int{kubelet: 99, agent: 99}, count(jobs))
	o.missing = true
	assert.Equal(t, map[subject]int{agent: 98}, count(jobsOf(all, o)))
	assert.Equal(t, []job{{subject: kubelet}, {subject: agent}}, jobsOf(results{}, o), "the names of the tests are not known")
}
