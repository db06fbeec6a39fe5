// Package study compares policies: it runs a simulation with each policy and each of many
// seeds, on one machine or in shares on many, and merges the results.
//
// # Behavior
//
// It decides which share has which runs, and how results are merged. A [Spec] has the names of
// the policies, the seeds, and the names of what a run measures. [Spec.Part] runs one share of
// it; the runs themselves are a function of the caller. A [Part] is a line of text, for a file,
// an object of the API server or a log. [Merge] makes the [Report] of the parts.
//
// Each seed is run with every policy, so that policies are compared under the same load, seed by
// seed: the differences between seeds are larger than those between policies.
//
// # Usage
//
//	spec := study.Spec{
//		Name: "ranking", Policies: []string{"kubelet", "youngest"}, Seeds: 50, Values: []string{"evictions"},
//	}
//	part, err := spec.Part(ctx, index, 10, run) // the share of this machine
//	err = part.Write(file)
//	…
//	parts, err := study.ReadParts(file)
//	report, err := study.Merge(parts)
//	err = report.WriteRuns(csv) // also WriteSummary, WriteBars and WritePlots
//
// examples/study is a program that takes its share by the completion index of an Indexed Job.
//
// # Concurrency
//
// Specs, Parts and Reports are values and may be used concurrently if they are not modified.
// Parts are independent of each other and may be made concurrently.
//
// # Guarantees and limits
//
// The same runs give the same files, byte for byte, for every number of shares and for parts in
// any order. The package computes with integers, except for the coordinates of images. Merge
// returns an error if a part is missing, occurs twice or is of another study, and names it; a
// study is the same if its Spec is equal. It does not detect that parts were made by different
// versions of a program: put the version into Spec.Settings.
//
// Parts are untrusted: a part has at most 32 MiB, a study at most 1<<20 runs. The sums of
// the values, and their maximum times Seeds, must fit into 64 bits.
//
// # Differences from the kubelet
//
// The kubelet has no counterpart.
//
// # Testing
//
// A study of 100 runs is merged from 1, 2 and 10 shares, and files are compared. Parts are
// fuzzed.
//
// # Stability
//
// Experimental: the API may change in any release.
package study
