// Package simcri runs simulations over the whole runtime side of the house: the
// engine of runtime/cri over a CRI runtime in memory, runtime/cri/fakecri.
package simcri
