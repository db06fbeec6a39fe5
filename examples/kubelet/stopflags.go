package main

import (
	"errors"
	"flag"
)

// declareStop declares the flags that decide whether pods outlive the agent.
func declareStop(fs *flag.FlagSet, o *options) {
	fs.BoolVar(&o.stopPods, "stop-pods", false, "on SIGTERM or Ctrl-C, stop all pods before the agent (default true for plain processes, else false: pods keep running and the next agent takes them over, as with a kubelet); not in a cluster")
	fs.BoolFunc("leave-pods", "the same as --stop-pods=false", func(text string) error {
		switch text {
		case "true":
			return fs.Set("stop-pods", "false")
		case "false":
			return fs.Set("stop-pods", "true")
		}
		return errors.New("want true or false")
	})
}

// decideStop applies the default of --stop-pods, which depends on the runtime.
func (o *options) decideStop(fs *flag.FlagSet) error {
	given := false
	fs.Visit(func(f *flag.Flag) { given = given || f.Name == "stop-pods" })
	switch {
	case given && o.stopPods && o.cluster.on():
		return errors.New("--stop-pods: the API server decides when pods of a cluster are stopped; use kubectl drain")
	case !given:
		o.stopPods = o.runtime == "process" && !o.cluster.on()
	}
	return nil
}

// stops describes what a signal stops.
func (o *options) stops() string {
	if o.stopPods {
		return "the pods and the agent"
	}
	return "the agent, not the pods"
}
