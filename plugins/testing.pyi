from weightloom.runtime.conformance.making import write_checkpoint as write_checkpoint
from weightloom.runtime.conformance.sample import Sample as Sample
from weightloom.runtime.conformance.subject import Subject as Subject
from weightloom.runtime.conformance.suite import Conformance as Conformance
