"""Models over HTTP. The path of a request, from outside in:

    connection  reads HTTP from a socket and writes the answer; cuts off clients that neither send nor read
    routes      who may ask, which route, is the body right; counts and logs the result
    batches     pending requests for the same model, computed together
    answers     what the model says

``bodies`` has the types of requests and answers and the schema that is written from them, ``limits`` says what is
refused, ``registry`` has the models, ``loading`` reads them from disk, ``running`` is the server. The lab adds its own
routes to the same service.
"""
