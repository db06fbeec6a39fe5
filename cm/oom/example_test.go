package oom_test

import (
	"fmt"

	"github.com/kubeparts/kubeparts/cm/oom"
)

func ExampleParser() {
	var p oom.Parser
	for _, line := range []string{
		"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/c,task=java,pid=42,uid=0",
		"Memory cgroup out of memory: Killed process 42 (java) total-vm:1048576kB",
	} {
		if kill, ok := p.Line(line); ok {
			fmt.Println(kill)
		}
	}
	// Output: process java (42) of /kubepods/pod1/c killed for memory of /kubepods/pod1
}
